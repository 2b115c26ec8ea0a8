package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NS is a network namespace that lives as long as the process, or until Close.
// It has no name and leaves nothing in the file system.
type NS struct{ file *os.File }

// NewNS makes a network namespace with its loopback up. It needs CAP_SYS_ADMIN.
func NewNS() (*NS, error) {
	ns := &NS{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network namespace: %w", err)
		}
		var err error
		ns.file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		if err != nil {
			return err
		}
		return LoopbackUp()
	})
	if err != nil {
		return nil, err
	}
	return ns, nil
}

// LoopbackUp sets the loopback interface of the calling thread's namespace up.
func LoopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return netlink.LinkSetUp(lo)
}

// CurrentNS is the namespace of the calling thread.
func CurrentNS() (*NS, error) {
	// Not /proc/self: the first thread, whose that is, may be one that onThread
	// has left in another, parked for good.
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	return &NS{file: f}, nil
}

// Fd is the namespace's file descriptor, for setns(2) and netlink.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// Do runs f on a thread of its own that is inside the namespace. Sockets that
// f opens on its own goroutine belong to the namespace for good; goroutines
// that f starts are outside of it.
func (n *NS) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(n.Fd(), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// Start starts cmd inside the namespace. The thread that forks stays alive
// until the process was started only, so cmd must not use Pdeathsig.
func (n *NS) Start(cmd *exec.Cmd) error { return n.Do(cmd.Start) }

// Close lets go of the namespace; processes and sockets inside keep it alive.
func (n *NS) Close() error { return n.file.Close() }

// onThread runs f on a locked thread, which ends with it: a thread that changed
// its namespace must never serve another goroutine.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}
