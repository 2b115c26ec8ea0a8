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

// kept are the capabilities that a supervisor goes on with, in its user
// namespace. Everything else is gone for it and for all that it starts.
var kept = []uintptr{
	unix.CAP_SYS_ADMIN,        // namespaces, mounts
	unix.CAP_NET_ADMIN,        // a room's, and loopback of a new network namespace
	unix.CAP_NET_BIND_SERVICE, // a room's; published ports below 1024 as root
	unix.CAP_SETUID,           // the ids of workers and the guard, as root
	unix.CAP_SETGID,
	unix.CAP_SETPCAP,      // what it starts empties its bounding set
	unix.CAP_KILL,         // as root, workers have another uid
	unix.CAP_SYS_PTRACE,   // /proc/PID/ns/net of a room, which isn't dumpable
	unix.CAP_DAC_OVERRIDE, // as root: sources of mounts that are a user's, mode 0700
	unix.CAP_DAC_READ_SEARCH,
	unix.CAP_CHOWN, // files and directories that a container gets of its own
	unix.CAP_FOWNER,
	unix.CAP_SYS_RESOURCE, // as root: rlimits and oom_score_adj
	unix.CAP_SYS_CHROOT,   // setns(2) into a mount namespace
}

// closeInherited closes what the caller has left open by mistake, a shell's pipe
// perhaps, which would stay open as long as this process lives. What we open
// ourselves is closed on exec, and so isn't meant.
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
	// Neither is the caller's: a directory that it could not unmount, and modes
	// of files that containers make.
	if err := os.Chdir("/"); err != nil {
		return err
	}
	unix.Umask(0o022)
	if os.Getpid() != 1 {
		return errors.New("a supervisor is PID 1 of a pid namespace: workshop starts it so")
	}
	// What is mounted on the machine later is still seen, and can be a source.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a mount namespace of its own: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = errors.New("the kernel refuses it where parts of /proc are covered, as in most containers")
		}
		return fmt.Errorf("/proc of its own: %w", err)
	}
	if err := closeInherited(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	// In our own user namespace alone: none below it, for anybody.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return fmt.Errorf("user namespaces can't be closed to workers: %w", err)
	}
	return nil
}

// dropCapabilities leaves the process those in kept, in all its sets, and takes
// care that no program that is executed gains any. It has to be the whole
// process: a child has the sets of the thread that made it.
func dropCapabilities() error {
	var keep uint64
	for _, c := range kept {
		keep |= 1 << c
	}
	// Packet sockets of rooms without netfilter. An ordinary user's supervisor may
	// not ask here; it has the capability in networks of its own alone.
	if missing, err := kernelsupport.Missing(kernelsupport.Extensions()); len(missing) > 0 || err != nil {
		keep |= 1 << unix.CAP_NET_RAW
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		_, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if e != 0 && e != unix.EINVAL { // one that this kernel doesn't have
			return fmt.Errorf("capability %d can't be dropped: %w", c, e)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if data[unix.CAP_SYS_ADMIN/32].Effective&(1<<(unix.CAP_SYS_ADMIN%32)) == 0 {
		return errors.New("a supervisor has to have the capabilities of its user namespace: workshop starts it so")
	}
	for i := range data {
		mask := uint32(keep >> (32 * i))
		data[i].Permitted &= mask
		data[i].Effective &= mask
		// What is in both sets can be ambient: as another uid than 0 children
		// have it from there.
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
