package landlock

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rules list what stays allowed. All other accesses that the kernel can restrict are
// refused.
type Rules struct {
	// Read may be read and executed, with everything below. A missing path is an
	// error.
	Read []string
	// Write may be read, executed and changed in every way, with everything below.
	Write []string
	// ReadFDs and WriteFDs are the same by descriptor, for callers that must not
	// resolve a path again. O_PATH is sufficient.
	ReadFDs, WriteFDs []int
	// ScopeSockets refuses connections to abstract unix sockets, and ScopeSignals
	// signals to processes, outside of this restriction's domain.
	ScopeSockets, ScopeSignals bool
}

// ErrUnsupported means that the kernel has no Landlock, or that it isn't enabled.
var ErrUnsupported = errors.New("this kernel has no Landlock")

// ABI returns the kernel's Landlock version; 0: none. For the versions see
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

// Restrict irrevocably restricts the calling thread and everything that it starts. The
// goroutine must be locked to its thread and then execute a program: other threads
// aren't restricted. It sets no_new_privs.
//
// The restriction depends on the kernel's version, abi: below 3 truncate(2), below 5
// ioctl(2) of devices, and below 6 the Scope fields aren't restricted. Without Landlock
// abi is 0 and the error [ErrUnsupported]; after any error nothing is restricted.
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

// allow adds a rule for everything below a descriptor.
func allow(set, fd int, access uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofAFile // the kernel refuses others for a file
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), beneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	runtime.KeepAlive(&rule)
	if errno != 0 {
		return errno
	}
	return nil
}
