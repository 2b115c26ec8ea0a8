package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lock"
)

// TestSharedExample: examples/shared/app is locked to the base and the imported workers beside
// it, and has them vendored. Their repositories are made here, with the same commits each time.
func TestSharedExample(t *testing.T) {
	shared, err := filepath.Abs("../../examples/shared")
	if err != nil {
		t.Fatal(err)
	}
	served := t.TempDir()
	address := testutil.ServeGit(t, served)
	testutil.Git(t, served, "config", "--global", "url."+address+"/.insteadOf", "https://git.example.org/")
	t.Setenv("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
	t.Setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
	home := os.Getenv("HOME") // that ServeGit made
	err = errors.Join(os.MkdirAll(home+"/.config/workshop", 0o755), os.WriteFile(home+"/.config/workshop/config.yaml", []byte("sources: {allow: [git.example.org/acme]}\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	workshop := func(dir string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		if code := Run(t.Context(), NewWorkshop, args, &command.System{Env: &app.Env{Dir: dir, Home: home, Lookup: os.LookupEnv}, Out: &out, Err: &out}); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, code, &out)
		}
	}
	locked := lock.Empty()
	locked.Images["llm-do-worker:latest"] = lock.Image{} // known: no registry is asked
	// example copies an example and locks it anew.
	example := func(name, dir string, alsoRuns ...string) {
		t.Helper()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(shared, name))); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.RemoveAll(dir+"/.workshop"), os.WriteFile(dir+"/workshop.lock", locked.Render(), 0o644)); err != nil {
			t.Fatal(err)
		}
		workshop(dir, "lock", "--yes")
		for _, command := range alsoRuns {
			workshop(dir, command)
		}
		at := filepath.Join(shared, name)
		if *update {
			if err := errors.Join(os.RemoveAll(at), os.CopyFS(at, os.DirFS(dir))); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(contents(t, at), contents(t, dir)); diff != "" {
			t.Errorf("examples/shared/%s isn't what `workshop lock` and `workshop vendor` write; run `go test ./internal/cli -run TestSharedExample -update`, and commit it\n%s", name, diff)
		}
	}
	publish := func(repository, tag string) {
		t.Helper()
		dir := filepath.Join(served, repository)
		testutil.Git(t, dir, "init", "--quiet")
		testutil.Git(t, dir, "add", ".")
		testutil.Git(t, dir, "commit", "--quiet", "-m", tag)
		testutil.Git(t, dir, "tag", tag)
	}
	example("go-review", served+"/acme/workshops/go-review")
	publish("acme/workshops", "v1.4.2")
	example("sast", served+"/acme/sast")
	publish("acme/sast", "v2.0.1")
	example("app", t.TempDir(), "vendor")
}

// contents are the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
