package supervisor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// kept are the capabilities that a supervisor keeps in its user namespace. It and
// all its children lose the others.
var kept = []uintptr{
	unix.CAP_SYS_ADMIN,        // namespaces, mounts
	unix.CAP_NET_ADMIN,        // a room's, and loopback of a new network namespace
	unix.CAP_NET_BIND_SERVICE, // a room's; published ports below 1024 as root
	unix.CAP_SETUID,           // the ids of workers and the guard, as root
	unix.CAP_SETGID,
	unix.CAP_SETPCAP,      // containers empty their bounding set
	unix.CAP_KILL,         // as root, workers have another uid
	unix.CAP_SYS_PTRACE,   // /proc/PID/ns/net of a room, which isn't dumpable
	unix.CAP_DAC_OVERRIDE, // as root: sources of mounts of a user, mode 0700
	unix.CAP_DAC_READ_SEARCH,
	unix.CAP_CHOWN, // a container's own files and directories
	unix.CAP_FOWNER,
	unix.CAP_SYS_RESOURCE, // as root: rlimits and oom_score_adj
	unix.CAP_SYS_CHROOT,   // setns(2) into a mount namespace
}

// closeInherited closes descriptors that the caller has leaked, such as a shell's
// pipe, which would stay open for the lifetime of this process. Our own are
// close-on-exec, and so excluded.
func closeInherited() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// confine separates the process from the machine's mounts and processes.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	// Don't inherit these: the directory would keep a mount busy, and the umask
	// would change the modes of containers' files.
	if err := os.Chdir("/"); err != nil {
		return err
	}
	unix.Umask(0o022)
	if os.Getpid() != 1 {
		return errors.New("a supervisor must be PID 1 of a pid namespace, as started by workshop")
	}
	// Later mounts of the machine still propagate, and can be sources.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a new mount namespace: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = errors.New("the kernel refuses it if parts of /proc are covered, as in most containers")
		}
		return fmt.Errorf("a new /proc: %w", err)
	}
	if err := closeInherited(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	// Only in our own user namespace: no process can create one below it.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return fmt.Errorf("user namespaces can't be closed to workers: %w", err)
	}
	return nil
}

// dropCapabilities reduces all sets of the process to kept, and makes sure that no
// executed program gains any. It applies to all threads: a child has the sets of the
// thread that created it.
func dropCapabilities() error {
	var keep uint64
	for _, c := range kept {
		keep |= 1 << c
	}
	// Packet sockets of rooms without netfilter. The supervisor of an unprivileged
	// user may not ask here; it has the capability only in its own networks.
	if missing, err := kernelsupport.Missing(kernelsupport.Extensions()); len(missing) > 0 || err != nil {
		keep |= 1 << unix.CAP_NET_RAW
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		_, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if e != 0 && e != unix.EINVAL { // EINVAL: this kernel doesn't have it
			return fmt.Errorf("capability %d can't be dropped: %w", c, e)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if data[unix.CAP_SYS_ADMIN/32].Effective&(1<<(unix.CAP_SYS_ADMIN%32)) == 0 {
		return errors.New("a supervisor must have all capabilities of its user namespace, as started by workshop")
	}
	for i := range data {
		mask := uint32(keep >> (32 * i))
		data[i].Permitted &= mask
		data[i].Effective &= mask
		// Capabilities in both sets can be ambient, which is how children with a uid
		// other than 0 get them.
		data[i].Inheritable &= mask
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
	if e != 0 {
		return fmt.Errorf("capset: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", e)
	}
	return nil
}
