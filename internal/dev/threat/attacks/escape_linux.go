package attacks

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// The tries of this file lead out of a container by the kernel, not by the
// network: to other processes, namespaces, mounts and devices.

// trace takes hold of another process: as a debugger, by its memory, or by a
// copy of one of its descriptors.
func trace(words []string, _ map[string]string) (string, string) {
	pid := number(words[1], 0)
	switch words[0] {
	case "seize":
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
		if errno != 0 {
			return probe.Seen(errno)
		}
		return "ok", ""
	case "memory":
		var to [8]byte
		local := unix.Iovec{Base: &to[0], Len: 8}
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return probe.Seen(err)
	case "descriptor":
		p, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			_, err = unix.PidfdGetfd(p, 0, 0)
		}
		return probe.Seen(err)
	}
	return "ERROR", "seize, memory or descriptor"
}

// enter joins the namespace that a link of /proc stands for.
func enter(words []string, _ map[string]string) (string, string) {
	f, err := os.Open(words[0])
	if err != nil {
		return probe.Seen(err)
	}
	defer f.Close()
	return probe.Seen(unix.Setns(int(f.Fd()), 0))
}

// parent asks the kernel for the namespace above one's own (ioctl_ns(2)), which
// a descriptor of would lead to.
func parent(words []string, _ map[string]string) (string, string) {
	f, err := os.Open("/proc/self/ns/" + words[0])
	if err != nil {
		return probe.Seen(err)
	}
	defer f.Close()
	what := uint(unix.NS_GET_PARENT)
	if words[0] != "pid" && words[0] != "user" {
		what = unix.NS_GET_USERNS
	}
	fd, err := unix.IoctlRetInt(int(f.Fd()), what)
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	return probe.Seen(unix.Setns(fd, 0))
}

// mounting makes a new mount, by the old call and by the new ones.
func mounting(words []string, opts map[string]string) (string, string) {
	if opts["new"] != "" {
		fd, err := unix.Fsopen(words[0], unix.FSOPEN_CLOEXEC)
		if err == nil {
			unix.Close(fd)
		}
		return probe.Seen(err)
	}
	dir := filepath.Join(os.TempDir(), "mounted")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return probe.Seen(err)
	}
	defer os.Remove(dir)
	source, kind, flags := "none", words[0], uintptr(0)
	if kind == "bind" {
		source, kind, flags = "/", "", unix.MS_BIND|unix.MS_REC
	}
	err := unix.Mount(source, dir, kind, flags, opts["data"])
	if err == nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	return probe.Seen(err)
}

// remount takes the read-only flag from a mount.
func remount(words []string, _ map[string]string) (string, string) {
	return probe.Seen(unix.Mount("none", words[0], "", unix.MS_REMOUNT|unix.MS_BIND, ""))
}

// unixDial connects to a unix socket; a name that begins with @ is abstract.
func unixDial(words []string, _ map[string]string) (string, string) {
	c, err := net.Dial("unix", words[0])
	if err != nil {
		return probe.Seen(err)
	}
	c.Close()
	return "open", ""
}

// device opens a device for reading and writing.
func device(words []string, _ map[string]string) (string, string) {
	fd, err := unix.Open(words[0], unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return probe.Seen(err)
}

// node makes a device node: block or char, MAJOR MINOR.
func node(words []string, _ map[string]string) (string, string) {
	mode := uint32(unix.S_IFCHR)
	if words[0] == "block" {
		mode = unix.S_IFBLK
	}
	path := filepath.Join(os.TempDir(), "node")
	defer os.Remove(path)
	if err := unix.Mknod(path, mode|0o666, int(unix.Mkdev(uint32(number(words[1], 1)), uint32(number(words[2], 3))))); err != nil {
		return probe.Seen(err)
	}
	return device([]string{path}, nil)
}

// typed puts a character into the input of the terminal that this process has
// (TIOCSTI, ioctl_tty(2)).
func typed(words []string, _ map[string]string) (string, string) {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0)
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	for _, c := range []byte(words[0]) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
			return probe.Seen(errno)
		}
	}
	return "ok", ""
}

// descriptors lists what this process was given beyond its three streams, by
// what stands behind it.
func descriptors([]string, map[string]string) (string, string) {
	found := ""
	for fd := 3; fd < 1024; fd++ {
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" { // of this program's own run time
			continue
		}
		found += " " + to
	}
	if found == "" {
		return "none", ""
	}
	return found[1:], ""
}

// kernel makes system calls that have led out of containers, with arguments
// that would do something.
func kernel(words []string, _ map[string]string) (string, string) {
	text := func(s string) uintptr { b := append([]byte(s), 0); return uintptr(unsafe.Pointer(&b[0])) }
	var errno unix.Errno
	switch words[0] {
	case "add_key":
		_, _, errno = unix.Syscall6(unix.SYS_ADD_KEY, text("user"), text("workshop"), text("x"), 1, ^uintptr(2), 0) // KEY_SPEC_SESSION_KEYRING
	case "keyctl":
		_, _, errno = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	case "request_key":
		_, _, errno = unix.Syscall6(unix.SYS_REQUEST_KEY, text("user"), text("workshop"), 0, 0, 0, 0)
	case "io_uring_setup":
		var params [120]byte // struct io_uring_params
		_, _, errno = unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	case "userfaultfd":
		_, _, errno = unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1, 0, 0) // UFFD_USER_MODE_ONLY
	case "bpf":
		var attr [64]byte
		attr[0], attr[4], attr[8], attr[12] = 2, 4, 4, 1 // an array of one value
		_, _, errno = unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
	case "chroot":
		_, _, errno = unix.Syscall(unix.SYS_CHROOT, text("/"), 0, 0)
	case "unshare":
		_, _, errno = unix.Syscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_FS, 0, 0)
	case "clone3":
		args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)} // struct clone_args
		pid, _, e := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), 88, 0)
		if pid == 0 && e == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		errno = e
	case "syslog":
		_, _, errno = unix.Syscall(unix.SYS_SYSLOG, 10, 0, 0) // SYSLOG_ACTION_SIZE_BUFFER
	case "sethostname":
		_, _, errno = unix.Syscall(unix.SYS_SETHOSTNAME, text("x"), 1, 0)
	case "open_by_handle_at":
		var handle [136]byte // struct file_handle, of inode 2
		handle[0], handle[4], handle[8] = 8, 1, 2
		_, _, errno = unix.Syscall(unix.SYS_OPEN_BY_HANDLE_AT, uintptr(0xffffffffffffff9c), uintptr(unsafe.Pointer(&handle[0])), 0)
	case "getpid":
	default:
		return "ERROR", "not in the table of this probe"
	}
	if errno != 0 {
		return probe.Seen(errno)
	}
	return "ok", ""
}
