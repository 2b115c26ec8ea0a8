package landlock

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rules say what stays possible. Everything else that the kernel can watch is
// refused.
type Rules struct {
	// Read may be read and executed, with all that lies below. A path that
	// doesn't exist is an error.
	Read []string
	// Write may be read, executed and changed in every way, with all that lies
	// below.
	Write []string
	// ReadFDs and WriteFDs are the same by descriptor, for who must not look up a
	// path again. O_PATH is enough.
	ReadFDs, WriteFDs []int
	// ScopeSockets refuses connections to abstract unix sockets, and ScopeSignals
	// signals to processes, that are not fenced by the same call.
	ScopeSockets, ScopeSignals bool
}

// ErrUnsupported: the kernel has no Landlock, or it isn't switched on.
var ErrUnsupported = errors.New("this kernel has no Landlock")

// ABI is the version that the kernel has; 0: none. What each one adds:
// Documentation/userspace-api/landlock.rst.
func ABI() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Versions of the ABI.
const (
	abiFiles    = 1
	abiRefer    = 2 // links and renames between directories; before, always refused
	abiTruncate = 3
	abiDevices  = 5 // ioctl(2) of devices
	abiScopes   = 6
)

const (
	read     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	files    = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV<<1 - 1 // all that are known here
	ofAFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	beneath  = unix.LANDLOCK_RULE_PATH_BENEATH
	fdIsPath = unix.O_PATH | unix.O_CLOEXEC
)

// Handled are the accesses to files that a kernel with this ABI can refuse.
func handled(abi int) uint64 {
	access := uint64(files)
	if abi < abiRefer {
		access &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi < abiTruncate {
		access &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < abiDevices {
		access &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return access
}

// Restrict puts the fence around the calling thread, for good, and around all
// that it starts. The goroutine must be locked to its thread, and goes on to
// execute a program: other threads stay outside. It sets no_new_privs.
//
// The fence is the best that the kernel has; abi says which that is: below 3
// truncate(2), below 5 ioctl(2) of devices, and below 6 what the Scope fields
// ask for isn't refused. Without Landlock it is 0 and [ErrUnsupported]; after
// any error nothing was restricted.
func Restrict(r Rules) (abi int, err error) {
	if abi = ABI(); abi < abiFiles {
		return 0, ErrUnsupported
	}
	access := handled(abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: access}
	size := unsafe.Offsetof(attr.Handled_access_net)
	if abi >= abiScopes {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		if r.ScopeSockets {
			attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
		if r.ScopeSignals {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	defer unix.Close(int(set))
	for _, group := range []struct {
		access uint64
		paths  []string
		fds    []int
	}{{access & read, r.Read, r.ReadFDs}, {access, r.Write, r.WriteFDs}} {
		for _, p := range group.paths {
			fd, err := unix.Open(p, fdIsPath, 0)
			if err == nil {
				err = allow(int(set), fd, group.access)
				unix.Close(fd)
			}
			if err != nil {
				return 0, fmt.Errorf("landlock: %s: %w", p, err)
			}
		}
		for _, fd := range group.fds {
			if err := allow(int(set), fd, group.access); err != nil {
				return 0, fmt.Errorf("landlock: descriptor %d: %w", fd, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	return abi, nil
}

// allow adds a rule for what is below a descriptor.
func allow(set, fd int, access uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofAFile // the kernel refuses what has no meaning
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), beneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	runtime.KeepAlive(&rule)
	if errno != 0 {
		return errno
	}
	return nil
}
