package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/safetar"
)

// copyProject is a project whose workers may write to out, which has links as they could make
// them. keys is the user's.
func copyProject(t *testing.T) *Env {
	t.Helper()
	dir, state := RealPath(t.TempDir()), t.TempDir()
	record, err := json.Marshal(facts.Record{Project: "p", Dir: dir, Roots: []string{filepath.Join(dir, "out")}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, err := range []error{
		os.MkdirAll(filepath.Join(state, "workshop/projects/p"), 0o700), os.WriteFile(filepath.Join(state, "workshop/projects/p/project.json"), record, 0o600),
		os.MkdirAll(at("out/dir/below"), 0o755), os.Mkdir(at("keys"), 0o755), os.WriteFile(at("keys/id"), []byte("PRIVATE"), 0o600), os.WriteFile(at("out/dir/id"), []byte("public"), 0o600),
		os.Symlink("../keys", at("out/link")), os.Symlink(at("keys"), at("out/absolute")), os.Symlink("/proc/self/cwd", at("out/proc")), os.Symlink("dir", at("out/inner")),
		os.Symlink("keys", at("mine")), os.Symlink("out/link", at("through")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return &Env{Dir: dir, Lookup: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }}
}

// B43, B47: no link of a worker leads a copy out of what workers may write; those of the user do.
func TestCopyHere(t *testing.T) {
	env := copyProject(t)
	const refused = "a symbolic link leads out of "
	for _, c := range []struct{ path, source, target string }{
		{"out/dir", "dir:dir", "dir:"},
		{"out/dir/", "dir:dir", "dir:"},
		{"out/dir/id", "file:public", "dir:id"},
		{"out/new", "no such file or directory", "out:new"},
		{"out/new/", "no such file or directory", "not a directory"},
		{"out/new/below", "no such file or directory", "no such file or directory"},
		{"out", "dir:out", "out:"},
		{"out/inner/below", "dir:below", "below:"},
		{"out/inner", "link:dir", "inner:"},
		{"out/link", "link:../keys", refused},
		{"out/link/id", refused, refused},
		{"out/link/new", refused, refused},
		{"out/dir/../link/id", refused, refused},
		{"out/absolute", "link:", refused},
		{"out/absolute/id", refused, refused},
		{"out/proc", "link:/proc/self/cwd", refused},
		{"out/proc/copyhere_linux_test.go", refused, refused},
		{"through", "link:out/link", refused},
		{"through/id", refused, refused},
		{"mine", "link:keys", "keys:"},
		{"mine/id", "file:PRIVATE", "keys:id"},
		{"keys/id", "file:PRIVATE", "keys:id"},
		{"/", "dir:/", "/:"},
	} {
		t.Run(c.path, func(t *testing.T) {
			if got := sourceOf(env, c.path); !strings.Contains(got, c.source) {
				t.Errorf("source: %s, want %s", got, c.source)
			}
			dir, name, err := env.openTarget(c.path)
			got := fmt.Sprint(err)
			if err == nil {
				got = filepath.Base(filepath.Clean(dir.Name())) + ":" + name
				dir.Close()
			}
			if !strings.Contains(got, c.target) {
				t.Errorf("target: %s, want %s", got, c.target)
			}
		})
	}
}

// sourceOf describes what is copied from a path.
func sourceOf(env *Env, given string) string {
	root, name, err := env.openHere(given, false)
	if err != nil {
		return err.Error()
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return copyHereError(root, given, err).Error()
	case info.IsDir():
		return "dir:" + filepath.Base(env.Abs(given))
	case !info.Mode().IsRegular():
		to, err := root.Readlink(name)
		return fmt.Sprint("link:", to, err)
	}
	b, err := root.ReadFile(name)
	return fmt.Sprintf("file:%s %v", b, err)
}

// So it is where the link is made at the same time.
func TestCopyHereWhileExchanged(t *testing.T) {
	env := copyProject(t)
	at := func(name string) string { return filepath.Join(env.Dir, filepath.FromSlash(name)) }
	var public bytes.Buffer
	root, err := os.OpenRoot(at("out"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := safetar.Pack(&public, root, "dir/id", "put", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	testutil.WhileExchanged(t, func() error {
		if dir, name, err := env.openTarget("out/dir"); err == nil {
			_, _ = safetar.Extract(dir, name, bytes.NewReader(public.Bytes()), safetar.Limits{})
			dir.Close()
		}
		if _, err := os.Lstat(at("keys/put")); err == nil {
			return errors.New("a copy was put beside what workers may write")
		}
		for _, source := range []string{"out/dir", "out/dir/id"} {
			var b bytes.Buffer
			if root, name, err := env.openHere(source, false); err == nil {
				_ = safetar.Pack(&b, root, name, "n", 1000, 1000)
				root.Close()
			}
			if strings.Contains(b.String(), "PRIVATE") {
				return errors.New("what lies beside it was copied")
			}
		}
		return nil
	}, [2]string{at("out/dir"), at("out/link")})
}
