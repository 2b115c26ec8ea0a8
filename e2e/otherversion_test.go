//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/initimage"
)

const inForm = "internal/engine/namespace/container/spec/spec.go"

// otherVersion builds another version of the program: with another workshop-init, and
// with form also another form of what the namespace engine records.
func otherVersion(s *scenario.Scenario, form bool) string {
	s.Helper()
	dir, replace := s.TempDir(), map[string]string{}
	build := func(out string, args ...string) {
		s.Helper()
		b, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			s.Fatal(err)
		}
		overlay := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(overlay, b, 0o600); err != nil {
			s.Fatal(err)
		}
		cmd := exec.Command("go", append([]string{"build", "-overlay", overlay, "-o", filepath.Join(dir, out)}, args...)...)
		cmd.Dir, cmd.Env = s.Root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("%v\n%s", err, out)
		}
	}
	instead := func(name string, data []byte) {
		s.Helper()
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			s.Fatal(err)
		}
		replace[filepath.Join(s.Root, name)] = path
	}
	program, err := os.ReadFile(s.Init())
	if err != nil {
		s.Fatal(err)
	}
	if form {
		text, err := os.ReadFile(filepath.Join(s.Root, inForm))
		if err != nil {
			s.Fatal(err)
		}
		other := bytes.Replace(text, fmt.Appendf(nil, "const Version = %d\n", spec.Version), fmt.Appendf(nil, "const Version = %d\n", spec.Version+1), 1)
		if bytes.Equal(other, text) {
			s.Fatalf("%s doesn't say its version", inForm)
		}
		instead(inForm, other)
		build("init", append(initimage.BuildFlags(), "./cmd/workshop-init")...)
		if program, err = os.ReadFile(filepath.Join(dir, "init")); err != nil {
			s.Fatal(err)
		}
	}
	program = append(program, "another version"...)
	names, err := initimage.Describe(runtime.GOARCH, program)
	if err != nil {
		s.Fatal(err)
	}
	about, err := json.Marshal(names)
	if err != nil {
		s.Fatal(err)
	}
	instead("internal/initimage/bin/"+runtime.GOARCH+"/"+initimage.FileName(runtime.GOARCH), initimage.PackFast(program))
	instead("internal/initimage/bin/names/"+initimage.NamesFile(runtime.GOARCH), about)
	build("workshop", "-ldflags", "-s -w -X github.com/llmdo/workshop/internal/cli.linkedVersion=v99.0.0", "./cmd/workshop")
	return filepath.Join(dir, "workshop")
}

// Who installs another version finds running workshops of the one before: every command
// works with them, `up` recreates them, and `down` removes them, in both directions.
func TestOtherVersion(t *testing.T) {
	s := scenario.New(t, "restricted", "a running workshop is used, recreated and removed by another version of the program")
	// With another form of the namespace engine's records once: building takes long.
	other := otherVersion(s, scenario.TheEngine() == scenario.Rootless)
	by := func(program string) func(want string, args ...string) {
		return func(want string, args ...string) {
			s.Helper()
			out, err := s.Program(context.Background(), program, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				s.Errorf("%s %s: %v, want %q in\n%s", filepath.Base(filepath.Dir(program)), strings.Join(args, " "), err, want, out)
			}
		}
	}
	uses := func(do func(string, ...string)) {
		s.Helper()
		do("up ", "ps")
		do("here", "exec", "worker", "--", "sh", "-c", "echo here")
		do("READY", "logs")
		do("allowed.example.org", "firewall", "show")
		do("allowed refused.example.org", "firewall", "allow", "refused.example.org", "--for", "5m")
		do("live-change", "firewall", "log")
	}
	s.Up()
	before := lives(s)
	uses(by(other))
	goOn(s, before, "worker", "room", "guard")
	by(other)("recreated", "up")
	after := lives(s)
	for service, was := range before {
		if after[service] == was || after[service] == "" {
			t.Errorf("%s isn't recreated: %q", service, after[service])
		}
	}
	uses(by(other))
	uses(by(s.Workshop()))
	by(s.Workshop())("recreated", "up")
	uses(by(s.Workshop()))
	by(other)("removed", "down")
	if left := lives(s); len(left) > 0 {
		t.Errorf("down leaves %v", left)
	}
}
