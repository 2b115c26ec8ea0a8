//go:build linux

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

func TestB11_Secrets(t *testing.T) {
	s := scenario.New(t, "secrets", "a secret is a file of the worker that names it, and stands nowhere else")
	holdsSecrets(t, s)
}

// holdsSecrets brings testdata/secrets up and down.
func holdsSecrets(t *testing.T, s *scenario.Scenario) {
	const token = "token-5c1d9e-not-to-be-seen"
	key := strings.TrimSpace(s.Read("key.txt"))
	s.Env = []string{"E2E_TOKEN=" + token, "XDG_RUNTIME_DIR=" + runtimeDir(t, s)}
	done := []scenario.Done{s.Expect(0, "validate"), s.Expect(0, "config"), s.Expect(0, "compile"), s.Up(), s.Expect(0, "ps")}
	got := s.Sees("holder", "read /run/secrets/token -> ok", "read /run/secrets/key -> ok", fmt.Sprintf("stat /run/secrets/token -> %d:%d 0400", scenario.UID, scenario.UID),
		"write /run/secrets/token -> EROFS|EACCES", "env E2E_TOKEN -> unset")
	if got[0].Detail != token || strings.TrimSpace(got[1].Detail) != key {
		t.Errorf("the holder reads %q and %q", got[0].Detail, got[1].Detail)
	}
	s.Sees("other", "read /run/secrets/token -> ENOENT|EACCES", "read /run/secrets/key -> ENOENT|EACCES", "env E2E_TOKEN -> unset")
	for _, secret := range []string{token, key} {
		for i, d := range done {
			if strings.Contains(d.Out+d.Err, secret) {
				t.Errorf("our own command %d prints the secret", i)
			}
		}
		for service := range s.Containers() {
			if v := s.View(service); strings.Contains(v.Rest+strings.Join(v.Env, "\n"), secret) {
				t.Errorf("%s: the engine's view, or the image, holds the secret", service)
			}
			if strings.Contains(s.Logs(service), secret) {
				t.Errorf("%s: the log holds the secret", service)
			}
		}
		err := filepath.WalkDir(filepath.Join(s.Dir, ".workshop"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), secret) {
				t.Errorf("%s holds the secret", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Expect(0, "down")
}

// runtimeDir stands in for XDG_RUNTIME_DIR: on a tmpfs, as it is on a desktop.
func runtimeDir(t *testing.T, s *scenario.Scenario) string {
	dir, err := os.MkdirTemp("/dev/shm", "workshop-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, _ := filepath.Glob(dir + "/workshop/*/*")
		if len(left) > 0 {
			t.Errorf("down left %v", left)
		}
		_ = os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Give(dir)
	return dir
}
