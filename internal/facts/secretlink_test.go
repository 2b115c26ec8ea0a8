package facts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// B7, B45: a worker that writes in the project puts something else in the place
// of a secret's file, after the workshop's file was looked at.
func TestSecretReplaced(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "ca.pem"), []byte("PRIVATE"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(keys string) error{
		"a link to a file of the caller's": func(keys string) error {
			return os.Symlink(filepath.Join(outside, "ca.pem"), filepath.Join(keys, "ca.pem"))
		},
		"a link above it": func(keys string) error { return errors.Join(os.Remove(keys), os.Symlink(outside, keys)) },
		"a FIFO":          func(keys string) error { return syscall.Mkfifo(filepath.Join(keys, "ca.pem"), 0o600) },
		"":                func(keys string) error { return os.WriteFile(filepath.Join(keys, "ca.pem"), []byte("CA"), 0o600) },
	} {
		for _, absolute := range []bool{false, true} {
			dir := t.TempDir()
			keys := filepath.Join(dir, "keys")
			err := errors.Join(os.Mkdir(keys, 0o755), plant(keys))
			if err != nil {
				t.Fatal(err)
			}
			p := "./keys/ca.pem"
			if absolute {
				p = filepath.Join(dir, p)
			}
			c := &collector{}
			c.facts.ProjectDir = dir
			done := make(chan error, 1)
			go func() {
				f, err := c.openSecret(p)
				if err == nil {
					defer f.Close()
				}
				done <- err
			}()
			select {
			case err = <-done:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: it hangs", name)
			}
			if link := strings.HasPrefix(name, "a link"); link != (err != nil) || link && os.IsNotExist(err) {
				t.Errorf("%s, absolute %v: %v", name, absolute, err)
			}
		}
	}
}
