package facts

import (
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// A place for the runtime directory that the caller can't write to is passed over
// before anything is made.
func TestRuntimeDirectoryThatCantBeMade(t *testing.T) {
	testutil.Require(t, unix.Geteuid() == 0, "only root can become another user")
	dir := runtimeRoot(t)
	if err := unix.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(dir, "workshop", "x")
	if err := canMake(below); err != nil {
		t.Error(err)
	}
	err := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 4321, ^uintptr(0)); e != 0 {
			err <- nil
		}
		err <- canMake(below)
	}()
	if <-err == nil {
		t.Error("a directory of another user counts as one to write to")
	}
}
