package monitor

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/seccomp"
)

// memoryLimit makes the garbage collector work harder from there on. What a guest's streams
// keep comes on top of what an idle monitor needs.
const memoryLimit = 40 << 20

// prepare closes the process to others, and bounds what it uses.
func prepare() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	// Each thread counts against the container's processes.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(memoryLimit)
	return nil
}

// calls are what a monitor needs once it has started everything: it connects to sockets of
// its container, looks at its mounts and the dial-in directory, and waits for its processes.
// Nothing is executed any more, and there is none that makes a file or looks at another
// process.
var calls = []uintptr{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SHUTDOWN,
	unix.SYS_OPENAT, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_GETDENTS64, unix.SYS_PREAD64, unix.SYS_POLL, unix.SYS_PPOLL,
	unix.SYS_WAITID, unix.SYS_WAIT4, unix.SYS_PIDFD_SEND_SIGNAL,
}

// confine gives up, for good, what the process doesn't need any more.
func confine() error { return seccomp.Allow(calls...) }
