package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	var files []string
	for _, pattern := range []string{"../../examples/*/workshop.yaml", "../../examples/shared/*/workshop.lock"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("%v, %v", some, err)
		}
		files = append(files, some...)
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

// TestEachByteCounts: a byte more in any file that a lock covers is named, by its name.
func TestEachByteCounts(t *testing.T) {
	const base, imported, is = ".workshop/_vendor/git.example.org,acme,workshops,,go-review", ".workshop/_vendor/git.example.org,acme,sast", " is not what workshop.lock has: its content is "
	t.Run("full", func(t *testing.T) {
		eachByteCounts(t, "full", map[string]string{
			"workshop.yaml": "file workshop.yaml is ", "schemas/report.yaml": "file schemas/report.yaml is ", "workers/code-reviewer.md": "file workers/code-reviewer.md is ",
			"workers/preview/preview.worker": "file workers/preview/preview.worker is ", "docker/Dockerfile": "build ./docker target scanner is ",
			"docker/new": "build ./docker target scanner is ", "workshop.lock": "the lock is cut off",
		})
	})
	t.Run("shared", func(t *testing.T) {
		eachByteCounts(t, "shared/app", map[string]string{
			"workshop.yaml": "file workshop.yaml is ", base + "/workshop.yaml": base + is, base + "/workers/reviewer.md": base + is, base + "/new": base + is,
			imported + "/workshop.yaml": imported + is, imported + "/workers/scanner.md": imported + is, imported + "/new": imported + is, "workshop.lock": "the lock is cut off",
		})
	})
}

func eachByteCounts(t *testing.T, example string, changes map[string]string) {
	dir := t.TempDir()
	for _, name := range []string{example, "hello"} { // full mounts a directory of hello
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS("../../examples/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(dir, example)
	check := func() (int, string) {
		var out bytes.Buffer
		code := Run(t.Context(), NewWorkshop, []string{"lock", "--check"}, &command.System{Env: &app.Env{Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}, Out: &out, Err: &out})
		return code, out.String()
	}
	if code, said := check(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	for name, want := range changes {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			before, err := os.ReadFile(file)
			if err != nil && filepath.Base(name) != "new" {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(slices.Clip(before), '#'), 0o644); err != nil {
				t.Fatal(err)
			}
			code, said := check()
			if code != 3 || !strings.Contains(said, want) {
				t.Errorf("exit code %d, want 3 and %q\n%s", code, want, said)
			}
			err = os.Remove(file)
			if err == nil && before != nil {
				err = os.WriteFile(file, before, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if code, said := check(); code != 0 {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
