package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/facts"
)

// TestRenamedWhileUp: B8, B60: a worker that may write to the project's directory
// can't give the project another name, by which nothing of it is up.
func TestRenamedWhileUp(t *testing.T) {
	dir := realPath(t.TempDir())
	home := filepath.Join(dir, "home")
	a := &app{System: &System{Dir: dir, Home: home, Lookup: func(string) (string, bool) { return "", false }}}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	runtime := func(project string) string {
		return filepath.Join(home, ".cache/workshop/run", facts.RuntimeID(project, dir))
	}
	named := func(want string) {
		t.Helper()
		got, err := a.target()
		if err != nil || got.project != want {
			t.Errorf("got %q, %v; want %s", got.project, err, want)
		}
	}
	refused := func(names ...string) {
		t.Helper()
		var f *failure
		_, err := a.target()
		if !errors.As(err, &f) || f.code != codeRefused {
			t.Fatalf("got %v, want a refusal", err)
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%v doesn't name %s", err, name)
			}
		}
	}
	write("workshop.yaml", "workshop:\n  name: review\n")
	named("review")
	// Brought up by -p: that is no word of the directory's.
	write(strings.TrimPrefix(runtime("by-hand"), dir)+"/snapshot", "")
	named("review")
	if err := errors.Join(os.MkdirAll(runtime("review"), 0o700), facts.KeepOwnName(runtime("review"))); err != nil {
		t.Fatal(err)
	}
	named("review")

	write("fake/commondir", "x")
	write(".git", "gitdir: fake\n")
	refused("project review", "review-fake")
	if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	write("workshop.yaml", "workshop:\n  name: other\n")
	refused("project review", "other")
	a.set.project = "review"
	named("review")
	a.set.project = ""
	if err := facts.Forget("review", dir, os.Getuid(), a.Lookup, home); err != nil {
		t.Fatal(err)
	}
	named("other")
}
