//go:build linux

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestStorageFull and TestPodmanStorageFull: an engine whose storage is full ends up in one
// error that says so, at each step that writes there, and nothing is left.
func TestStorageFull(t *testing.T) {
	scenario.OnlyDocker(t, "an engine of the test's own; TestPodmanStorageFull is the like for podman")
	if !scenario.Alone(t) {
		return
	}
	dir := smallStorage(t, t.TempDir())
	scenario.NewEngine(t, "--data-root", dir)
	fullAtEachStep(t, dir)
}

func TestPodmanStorageFull(t *testing.T) {
	scenario.OnlyPodman(t, "its storage; TestStorageFull is the like for Docker")
	s := scenario.New(t, "restricted", "the storage that podman has is replaced by a small one")
	s.EndPodman(syscall.SIGTERM)
	t.Cleanup(s.StartPodman)
	t.Cleanup(func() { s.EndPodman(syscall.SIGTERM) })
	dir := smallStorage(t, s.PodmanStorage())
	s.StartPodman()
	fullAtEachStep(t, dir)
}

// smallStorage mounts a file system of a few megabytes.
func smallStorage(t *testing.T, dir string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o711), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m,mode=0711")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func fullAtEachStep(t *testing.T, dir string) {
	s := scenario.New(t, "restricted", "an engine whose storage is full: up ends with one error that says so, leaves nothing, and works when there is space again")
	ballast := filepath.Join(dir, "ballast")
	full := func(what string, space uint64) {
		t.Helper()
		leave(t, ballast, space)
		d := s.Run("up")
		if d.Code != 5 || strings.Count(d.Err, "workshop: error: ") != 1 || !strings.Contains(d.Err, "no space left on device") || strings.Contains(d.Err, `{"`) {
			t.Errorf("%s: exit code %d, want 5 and one error that says why:\n%s", what, d.Code, d.Err)
		}
		// podman needs space to remove what it has.
		if l := left(s); l != nil && !strings.Contains(d.Err, "what this `up` had made is not all removed") {
			t.Errorf("%s: up left %v, and says nothing of it:\n%s", what, l, d.Err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		s.Expect(0, "down")
		if l := left(s); l != nil {
			t.Errorf("%s: down left %v", what, l)
		}
	}
	full("no image yet", 0)
	full("half of an image", 1<<20)
	s.Up()
	s.Expect(0, "down")
	full("container", 0)
	full("container, some space", 64<<10)
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}

// leave fills a file system by one file until no more than space is left, in bytes.
func leave(t *testing.T, file string, space uint64) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(file), &st); err != nil {
		t.Fatal(err)
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < space {
		t.Fatalf("%d bytes are free, want %d", free, space)
	}
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, int64(free-space)), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
