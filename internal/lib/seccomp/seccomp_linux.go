package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of linux/bpf_common.h, and where struct seccomp_data (linux/seccomp.h) has
// the number, the architecture and the low half of the first argument.
const (
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAny   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	giveBack  = unix.BPF_RET | unix.BPF_K

	atNumber = 0
	atArch   = 4
	atFirst  = 16
)

const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// maxCalls: a jump goes at most 255 instructions ahead.
const maxCalls = 240

// runtimeCalls are what Go's runtime needs (runtime/sys_linux_*.s), besides clone(2): that
// may make only threads.
var runtimeCalls = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_FUTEX,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK,
	unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_TGKILL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_FCNTL, unix.SYS_GETRANDOM, unix.SYS_RESTART_SYSCALL,
}

// Allow irrevocably leaves all threads of the process with the given system calls and
// those of Go's runtime. Others fail with EPERM; calls of another architecture end the
// process. It sets no_new_privs. Nothing can be executed any more.
func Allow(calls ...uintptr) error {
	code, err := program(calls)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("install the seccomp filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("install the seccomp filter: thread %d has another one", thread)
	}
	return nil
}

// program is the filter.
func program(calls []uintptr) ([]unix.SockFilter, error) {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if arch == 0 {
		return nil, errors.New("there is no seccomp filter for " + runtime.GOARCH)
	}
	all := append(append([]uintptr{}, runtimeCalls...), calls...)
	if len(all) > maxCalls {
		return nil, fmt.Errorf("a seccomp filter of %d calls, want at most %d", len(all), maxCalls)
	}
	code := []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: jumpEqual, K: arch, Jt: 1},
		{Code: giveBack, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: atNumber}, // calls of x32 have other numbers
		{Code: jumpEqual, K: unix.SYS_CLONE, Jt: uint8(len(all) + 1)},
	}
	for i, n := range all {
		code = append(code, unix.SockFilter{Code: jumpEqual, K: uint32(n), Jt: uint8(len(all) - i + 2)})
	}
	return append(code,
		unix.SockFilter{Code: giveBack, K: refuse},
		unix.SockFilter{Code: load, K: atFirst},
		unix.SockFilter{Code: jumpAny, K: unix.CLONE_THREAD, Jf: 1},
		unix.SockFilter{Code: giveBack, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: giveBack, K: refuse},
	), nil
}
