package container

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/landlock"
)

// limits of setrlimit(2). Those that aren't set are the caller's.
func (s *stage) limits() error {
	for _, r := range withOwn(s.c.Rlimits) {
		if err := unix.Setrlimit(rlimits[r.Name], &unix.Rlimit{Cur: r.Soft, Max: r.Hard}); err != nil {
			return fmt.Errorf("the limit %s %d, %d: %w", r.Name, r.Soft, r.Hard, err)
		}
	}
	return nil
}

// withOwn adds what no container inherits. No core is ever written: it would
// hold secrets, and where it goes is the machine's decision. And who may use
// real-time priorities, as the users of many desktops may, would need no share
// of the processors (B5): no control group bounds those.
func withOwn(given []spec.Rlimit) []spec.Rlimit {
	all := []spec.Rlimit{{Name: "core"}, {Name: "rtprio"}, {Name: "nice"}}
	for _, r := range given {
		if r.Name != "core" || r.Soft != 0 {
			all = append(all, r)
		}
	}
	return all
}

// descriptors: none but the program's own outlive execve(2).
func (s *stage) descriptors() error {
	for _, fd := range s.order.Null {
		null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Dup3(null, fd, 0)
			unix.Close(null)
		}
		if err != nil {
			return fmt.Errorf("/dev/null: %w", err)
		}
	}
	if err := unix.CloseRange(uint(s.first), ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", explain(err))
	}
	for _, fd := range s.instead.packets {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
	}
	return nil
}

// enter goes to the working directory, as the user. No link leads out of the
// container, by a descriptor that is still open.
func (s *stage) enter() error {
	cwd := strings.TrimPrefix(s.c.Process.Cwd, "/")
	if cwd == "" {
		return nil
	}
	fd, err := open(s.root.fd, cwd, unix.O_DIRECTORY, unix.RESOLVE_IN_ROOT)
	if err == nil {
		err = unix.Fchdir(fd)
	}
	if err != nil {
		return fmt.Errorf("the working directory %s: %w", s.c.Process.Cwd, err)
	}
	return unix.Close(fd)
}

// landlock is a second fence, should a mount be writable that must not be. A
// kernel without it has the first alone.
func (s *stage) landlock() error {
	if !s.c.Landlock {
		return nil
	}
	rules := landlock.Rules{Read: []string{"/"}, Write: []string{"/dev", "/proc"}, WriteFDs: s.writable, ScopeSignals: true}
	// The abstract sockets of a room are its workers' in common, those of the
	// machine nobody's.
	rules.ScopeSockets = s.c.Network.Mode == spec.NetNone || s.c.Network.Mode == spec.NetHost
	_, err := landlock.Restrict(rules)
	if err != nil && !errors.Is(err, landlock.ErrUnsupported) {
		return err
	}
	return nil
}

// signals are as a new process has them: nothing is ignored or held back.
func (s *stage) signals() error {
	// struct sigaction of the kernel; 1 is SIG_IGN.
	var now, none [4]uint64
	for n := uintptr(1); n <= 64; n++ {
		if n == uintptr(unix.SIGKILL) || n == uintptr(unix.SIGSTOP) {
			continue
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, 0, uintptr(unsafe.Pointer(&now)), 8, 0, 0); errno != 0 {
			return fmt.Errorf("signal %d: %w", n, errno)
		}
		if now[0] != 1 {
			continue
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0); errno != 0 {
			return fmt.Errorf("signal %d: %w", n, errno)
		}
	}
	var mask uint64
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0); errno != 0 {
		return fmt.Errorf("the signal mask: %w", errno)
	}
	return nil
}

// seccomp: the last thing. The filter lets execve through, and what tells of
// its failure.
func (s *stage) seccomp() error {
	filter := slices.Concat(before(s.c), unsafe.Slice((*unix.SockFilter)(unsafe.Pointer(&s.c.Seccomp[0])), len(s.c.Seccomp)/8))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const setModeFilter = 1 // linux/seccomp.h
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("the seccomp filter: %w", errno)
	}
	return nil
}

// exec executes the container's program. It returns only an error.
func (s *stage) exec() error {
	p := s.c.Process
	args := slices.Concat(p.Args, s.instead.args())
	if _, err := unix.Write(s.status, []byte{begun}); err != nil {
		return err
	}
	err := syscall.Exec(args[0], args, p.Env)
	if err == unix.ENOENT {
		err = fmt.Errorf("%w (it, its interpreter or its loader)", err)
	}
	return fmt.Errorf("execute %s: %w", args[0], err)
}
