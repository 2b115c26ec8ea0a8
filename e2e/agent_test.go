//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/session/audit"
)

// TestB42_AgentExample: B41, B42. A scripted client plays the model of
// examples/agent. Its program compares each answer, and who was asked, with the
// script; here is looked at what it leaves behind.
func TestB42_AgentExample(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := by(scenario.Example(t, "agent", "a review by an MCP client: it reads ro, writes rw, is refused a name, is approved or not, and delegates"))
	home := s.TempDir()
	program := filepath.Join(s.TempDir(), "agent")
	build := exec.Command("go", "build", "-o", program, "./examples/agent")
	build.Dir = s.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := s.Program(t.Context(), program)
	cmd.Env = append(cmd.Env, "PATH="+s.Bin+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home)
	s.Cleanup(func() { // what runs on the namespace engine is in this state directory
		down := s.Command(context.Background(), "down", "--quiet")
		down.Env = append(down.Env, "XDG_STATE_HOME="+home)
		if out, err := down.CombinedOutput(); err != nil {
			s.Errorf("down: %v\n%s", err, out)
		}
	})
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &errs)
	}
	if got := s.Read("output/report.md"); !strings.Contains(got, "main.go.txt:6") {
		t.Errorf("the report: %q", got)
	}
	if s.Exists("output/other.md") {
		t.Error("output/other.md was written although the person said no")
	}
	if got := s.Read("src/main.go.txt"); !strings.Contains(got, "hunter2") {
		t.Errorf("src is mounted ro, and holds %q", got)
	}
	if asked := s.Internet.Queries(); len(asked) > 0 {
		t.Errorf("a name that nobody allows was asked for: %v", asked)
	}

	// Each call stands in the audit once, with its end or with why not.
	ends := map[string]string{}
	for _, e := range auditOf(t, home) {
		if e.Event == "call" {
			if _, twice := ends[e.ID]; twice {
				t.Errorf("two calls are %s", e.ID)
			}
			ends[e.ID] = ""
			continue
		}
		if ends[e.ID] != "" {
			t.Errorf("%s ends twice: %s, %s", e.ID, ends[e.ID], e.Event)
		}
		ends[e.ID] = e.Event
	}
	var steps []any
	script, err := os.ReadFile(filepath.Join(s.Dir, "script.json"))
	if err == nil {
		err = json.Unmarshal(script, &steps)
	}
	if err != nil || len(ends) != len(steps) {
		t.Errorf("%d calls in the audit, %d in the script (%v)", len(ends), len(steps), err)
	}
}

// auditOf reads the audit below a state directory.
func auditOf(t *testing.T, home string) (all []audit.Event) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			var e audit.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Errorf("%s: %v: %s", path, err, line)
			}
			all = append(all, e)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no audit: %v", err)
	}
	return all
}
