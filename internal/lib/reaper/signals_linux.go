package reaper

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runtimeSignals are those of faults, and the one by which Go's scheduler interrupts
// a goroutine.
var runtimeSignals = []os.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGURG}

// DropSignals makes the kernel drop all signals but those wanted and those that Go's
// runtime needs. The runtime handles every signal and exits on many of them, and each
// process of the same uid can send them. A flood of real-time signals, which the kernel
// queues, would keep this process from doing anything else.
//
// Programs that are started here don't inherit it, as they do with os/signal.Ignore:
// the runtime still counts these handlers as its own, and removes them before an exec.
func DropSignals(wanted ...os.Signal) error {
	type action struct { // sigaction of the kernel
		handler uintptr
		rest    [3]uint64
	}
	const signals, setSize = 64, 8 // NSIG, and bytes of a set of so many
	for s := unix.Signal(1); s <= signals; s++ {
		if slices.Contains(wanted, os.Signal(s)) || slices.Contains(runtimeSignals, os.Signal(s)) {
			continue
		}
		var now action
		_, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&now)), setSize, 0, 0)
		const standard, ignored = 0, 1 // SIG_DFL, SIG_IGN
		if no == 0 && now.handler != standard && now.handler != ignored {
			_, _, no = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action{handler: ignored})), 0, setSize, 0, 0)
		}
		if no != 0 {
			return fmt.Errorf("rt_sigaction %d: %w", s, no)
		}
	}
	return nil
}
