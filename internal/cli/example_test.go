package cli

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// TestCommittedExample: examples/ci has the compiled project beside its file,
// as its workflow checks it.
func TestCommittedExample(t *testing.T) {
	dir, err := filepath.Abs("../../examples/ci")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", "--strict", "--format", "github"}, {"compile", "--check"}} {
		var out bytes.Buffer
		code := Run(t.Context(), NewWorkshop, args, &command.System{Env: &app.Env{Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}, Out: &out, Err: &out})
		if code != 0 {
			t.Errorf("%v: exit code %d\n%s\nIf the compile changed: (cd examples/ci && workshop compile), and commit .workshop", args, code, &out)
		}
	}
}

// TestExamplesAreLocked: the lock of each example is what `workshop lock` writes.
func TestExamplesAreLocked(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/workshop.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			dir, err := filepath.Abs(filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			code := Run(t.Context(), NewWorkshop, []string{"lock", "--check"}, &command.System{Env: &app.Env{Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}, Out: &out, Err: &out})
			if code != 0 {
				t.Errorf("exit code %d\n%s\nIf that is right: (cd %s && workshop lock), and commit workshop.lock", code, &out, dir)
			}
		})
	}
}
