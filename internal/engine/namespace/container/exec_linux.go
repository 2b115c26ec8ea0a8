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

// limits sets the limits of setrlimit(2). Others are inherited.
func (s *stage) limits() error {
	for _, r := range withOwn(s.c.Rlimits) {
		if err := unix.Setrlimit(rlimits[r.Name], &unix.Rlimit{Cur: r.Soft, Max: r.Hard}); err != nil {
			return fmt.Errorf("the limit %s %d, %d: %w", r.Name, r.Soft, r.Hard, err)
		}
	}
	return nil
}

// withOwn adds limits that are never inherited. No core is dumped: it would contain
// secrets, and the machine decides where it is written. Real-time priorities, which
// many desktops permit, would bypass the cpu limit (B5), as no control group bounds
// them.
func withOwn(given []spec.Rlimit) []spec.Rlimit {
	all := []spec.Rlimit{{Name: "core"}, {Name: "rtprio"}, {Name: "nice"}}
	for _, r := range given {
		if r.Name != "core" || r.Soft != 0 {
			all = append(all, r)
		}
	}
	return all
}

// descriptors makes sure that only the program's own descriptors outlive execve(2).
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

// enter changes to the working directory, as the user. A magic link of a descriptor
// that is still open can't lead out of the container.
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

// landlock is a second layer of protection, should a mount wrongly be writable. A
// kernel without Landlock has the mounts alone.
func (s *stage) landlock() error {
	if !s.c.Landlock {
		return nil
	}
	rules := landlock.Rules{Read: []string{"/"}, Write: []string{"/dev", "/proc"}, WriteFDs: s.writable, ScopeSignals: true}
	// The workers of a room share its abstract sockets; none may use the machine's.
	rules.ScopeSockets = s.c.Network.Mode == spec.NetNone || s.c.Network.Mode == spec.NetHost
	_, err := landlock.Restrict(rules)
	if err != nil && !errors.Is(err, landlock.ErrUnsupported) {
		return err
	}
	return nil
}

// signals resets the signals: none is ignored or blocked.
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

// seccomp installs the filter, as the last step. The filter allows execve, and the
// calls that report its failure.
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
