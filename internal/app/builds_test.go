package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/trust"
)

// TestBuildApproval: refused without a person, agreed by --yes, and asked no
// more once the content was agreed to.
func TestBuildApproval(t *testing.T) {
	home := t.TempDir()
	a := testEnv(&Env{Dir: home, Home: home, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
	b := BuildRequest{For: "one", Context: home, Dockerfile: "Dockerfile", Digest: "abc"}
	err := a.Approver("workshop up", false)(t.Context(), b)
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Code != CodeRefused || !strings.Contains(strings.Join(f.Hints, "\n"), "`workshop up --yes`") {
		t.Fatalf("%v", err)
	}
	if err := a.Approver("workshop up", true)(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := a.Approver("workshop up", false)(t.Context(), b); err == nil {
		t.Error("--yes of one run was remembered")
	}
	if err := (trust.Builds{Dir: a.StateDir()}).Add(b.Digest, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := a.Approver("workshop up", false)(t.Context(), b); err != nil {
		t.Errorf("agreed to, and asked again: %v", err)
	}
	b.Digest = "abd"
	if err := a.Approver("workshop up", false)(t.Context(), b); err == nil {
		t.Error("another content was not asked about")
	}
}

// B46: what is built is what was compared with the lock, also where the files change in
// between and back.
func TestBuildIsWhatIsLocked(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("workshop.yaml", "workshop:\n  name: w\n  container: {build: ./image}\n  workers:\n    - {name: one, tools: [], instructions: x}\n    - {name: two, tools: [], instructions: x, container: {build: {context: \"${DIR:-./image}\"}}}\n")
	write("image/Dockerfile", "FROM scratch\n")
	env := func() *Env {
		a := testEnv(&Env{Dir: home, Home: home, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
		a.Settings.File = filepath.Join(home, "workshop.yaml")
		return a
	}
	if _, err := env().Lock(t.Context(), LockOptions{Offline: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		frozen bool
		text   string
		code   int
	}{
		{"as it is locked", true, "FROM scratch\n", CodeOK},
		{"changed", true, "FROM other\n", CodeRefused},
		{"changed on a desk", false, "FROM other\n", CodeOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			write("image/Dockerfile", "FROM scratch\n")
			a := env()
			a.Settings.Frozen = &c.frozen
			p, err := a.Compile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p.Compiled.Facts = &compose.Facts{ProjectDir: home}
			if err := a.CheckLock(t.Context(), p.Source); err != nil {
				t.Fatal(err)
			}
			write("image/Dockerfile", c.text)
			if _, err := a.buildHashes(t.Context(), p); codeOfError(err) != c.code {
				t.Errorf("%v; want code %d", err, c.code)
			}
		})
	}
}
