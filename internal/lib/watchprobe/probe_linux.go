// Package watchprobe ends a host program with an error message if Go's runtime would end
// it with a stack trace, because no epoll watch or instance is available. The kernel
// counts watches for each uid, and a worker with the caller's uid can use them all. The
// runtime needs its first ones as soon as something waits, already in package os; so the
// probe is an init function without imports that would be initialised first (Go
// initialises packages in the order of their paths).
// Only the main packages import it.
package watchprobe

import (
	"strconv"
	"syscall"
	"unsafe"
)

// exitCode is the one of an engine that doesn't answer: nothing was done.
const exitCode = 5

func init() {
	if err := probe(); err != 0 {
		say(err)
		syscall.Exit(exitCode)
	}
}

// probe makes the system calls of the runtime's start once.
func probe() syscall.Errno {
	epoll, _, err := syscall.RawSyscall(syscall.SYS_EPOLL_CREATE1, syscall.EPOLL_CLOEXEC, 0, 0)
	if err != 0 {
		return err
	}
	defer syscall.RawSyscall(syscall.SYS_CLOSE, epoll, 0, 0)
	event, _, err := syscall.RawSyscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0)
	if err != 0 {
		return err
	}
	defer syscall.RawSyscall(syscall.SYS_CLOSE, event, 0, 0)
	in := syscall.EpollEvent{Events: syscall.EPOLLIN}
	_, _, err = syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, epoll, syscall.EPOLL_CTL_ADD, event, uintptr(unsafe.Pointer(&in)), 0, 0)
	return err
}

// say writes the error and the hint. `workshop down` couldn't run, nor could another Go
// program such as docker; sh, pgrep and kill can.
func say(err syscall.Errno) {
	uid := strconv.Itoa(syscall.Getuid())
	text := "workshop: error: this program can't wait for anything (" + err.Error() + "): "
	if err == syscall.ENOSPC {
		text += "all epoll watches of uid " + uid + " are in use, as a rule by one of its programs or workers\n" +
			"  = hint: namespace engine: `kill -KILL $(pgrep -u " + uid + " -f 'workshop-init supervise')` ends all workers of this uid, and leaves `workshop up` and `workshop down` their work\n" +
			"  = hint: Docker, or workers that root started: `sudo workshop down`; root's watches count apart\n"
	} else {
		text += "it may open too few files\n  = hint: raise the limit (`ulimit -n 1024`), or end what has them open\n"
	}
	b := []byte(text)
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, 2, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
}
