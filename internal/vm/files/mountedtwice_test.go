package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory that is mounted in two places of a share is in both for a guest. A kernel that
// took it for one would move it to where it was looked up last, and what is mounted of it there.
func TestMountedTwice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	source, root := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(source, "bin"), filepath.Join(root, "0"), filepath.Join(root, "1")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{source: filepath.Join(root, "0"), filepath.Join(source, "bin"): filepath.Join(root, "1")} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	dir := mount(t, shared(t, root, false, Limits{}))
	one, err := os.Open(filepath.Join(dir, "1"))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := os.ReadDir(filepath.Join(dir, "0/bin")); err != nil {
		t.Fatal(err)
	}
	is, err := filepath.EvalSymlinks(fmt.Sprintf("/proc/self/fd/%d", one.Fd()))
	if want := filepath.Join(dir, "1"); err != nil || is != want {
		t.Errorf("what was opened at %s is at %s, %v", want, is, err)
	}
	// What is made in one is in the other.
	_, before := os.Stat(filepath.Join(dir, "1/new"))
	err = os.WriteFile(filepath.Join(dir, "0/bin/new"), []byte("new"), 0o644)
	text, err2 := os.ReadFile(filepath.Join(source, "bin/new"))
	if !errors.Is(before, os.ErrNotExist) || errors.Join(err, err2) != nil || string(text) != "new" {
		t.Errorf("%v, %v, %q, %v", before, err, text, err2)
	}
}
