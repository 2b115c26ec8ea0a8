//go:build linux

package probe

import "golang.org/x/sys/unix"

// systemCall tries a system call that a seccomp profile should refuse, with arguments
// that have no effect if it is allowed.
func systemCall(a args) (string, string) {
	const bad = ^uintptr(0)
	calls := map[string][4]uintptr{
		"add_key":           {unix.SYS_ADD_KEY, 0, 0, 0},
		"keyctl":            {unix.SYS_KEYCTL, 0, bad, 0},
		"bpf":               {unix.SYS_BPF, bad, 0, 0},
		"perf_event_open":   {unix.SYS_PERF_EVENT_OPEN, 0, 0, bad},
		"userfaultfd":       {unix.SYS_USERFAULTFD, 0, 0, 0},
		"open_by_handle_at": {unix.SYS_OPEN_BY_HANDLE_AT, bad, 0, 0},
		"mount":             {unix.SYS_MOUNT, 0, 0, 0},
		"umount2":           {unix.SYS_UMOUNT2, 0, 0, 0},
		"pivot_root":        {unix.SYS_PIVOT_ROOT, 0, 0, 0},
		"setns":             {unix.SYS_SETNS, bad, 0, 0},
		"unshare":           {unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0},
		"init_module":       {unix.SYS_INIT_MODULE, 0, 0, 0},
		"kexec_load":        {unix.SYS_KEXEC_LOAD, 0, 0, 0},
		"reboot":            {unix.SYS_REBOOT, 0, 0, 0},
		"swapon":            {unix.SYS_SWAPON, 0, 0, 0},
		"acct":              {unix.SYS_ACCT, 0, 0, 0},
		"settimeofday":      {unix.SYS_SETTIMEOFDAY, 0, 0, 0},
		"clone3":            {unix.SYS_CLONE3, 0, 0, 0},
		"io_uring_setup":    {unix.SYS_IO_URING_SETUP, 0, 0, 0},
		"ptrace":            {unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0},
		"getpid":            {unix.SYS_GETPID, 0, 0, 0}, // the control
	}
	c, ok := calls[a.pos[0]]
	if !ok {
		return "ERROR", "not in the table of this probe"
	}
	_, _, errno := unix.Syscall(c[0], c[1], c[2], c[3])
	if errno != 0 {
		return seenOf(errno)
	}
	return "ok", ""
}
