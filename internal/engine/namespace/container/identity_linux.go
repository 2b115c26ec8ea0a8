package container

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Unlike syscall's functions, these set the calling thread only: execve(2) ends the
// others.

// boundingSet drops all capabilities that aren't kept for good, and takes away the
// privileges of uid 0.
func (s *stage) boundingSet() error {
	keep := s.kept()
	for n := 0; n < 64; n++ {
		if keep&(1<<n) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
		if err == unix.EINVAL && n > unix.CAP_AUDIT_READ {
			break // the kernel has no further ones
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", n, err)
		}
	}
	// Changing ids doesn't change capabilities, which are set separately.
	bits := secNoRoot | secNoRoot<<1 | secNoSetuidFixup | secNoSetuidFixup<<1 | secKeepCaps<<1
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, uintptr(bits), 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	return nil
}

// linux/securebits.h; the bit above each locks it.
const (
	secNoRoot        = 1 << 0
	secNoSetuidFixup = 1 << 2
	secKeepCaps      = 1 << 4
)

func (s *stage) kept() uint64 {
	var set uint64
	for _, name := range s.c.Capabilities {
		set |= 1 << capabilities[name]
	}
	return set
}

// groupsDenied reports whether this is the user namespace of an unprivileged user,
// who may not change groups (user_namespaces(7)).
func groupsDenied() bool {
	b, err := os.ReadFile("/proc/self/setgroups")
	return err == nil && string(b) == "deny\n"
}

// ids sets the container's user and group, without supplementary groups. The
// supervisor of an unprivileged user may not change groups; those it has aren't
// mapped into its namespace.
func (s *stage) ids() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 && !(errno == unix.EPERM && groupsDenied()) {
		return fmt.Errorf("setgroups: %w", errno)
	}
	gid, uid := uintptr(s.c.Process.GID), uintptr(s.c.Process.UID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return notMapped("gid", s.c.Process.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return notMapped("uid", s.c.Process.UID, errno)
	}
	return nil
}

func notMapped(what string, id uint32, err error) error {
	if err == unix.EINVAL {
		return fmt.Errorf("%s %d isn't mapped here: without root containers run with the caller's own ids", what, id)
	}
	return fmt.Errorf("%s %d: %w", what, id, err)
}

// capabilities sets exactly the kept ones in all sets, so that the program has them
// too.
func (s *stage) capabilities() error {
	keep := s.kept()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for i := range data {
		half := uint32(keep >> (32 * i))
		data[i] = unix.CapUserData{Effective: half, Permitted: half, Inheritable: half}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); errno != 0 {
		return fmt.Errorf("capset: %w", errno)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for n := range 64 {
		if keep&(1<<n) == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(n), 0, 0); err != nil {
			return fmt.Errorf("ambient capability %d: %w", n, err)
		}
	}
	return nil
}

// keyring joins an empty session keyring, to hide that of the supervisor's caller.
func (s *stage) keyring() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 && errno != unix.ENOSYS {
		return fmt.Errorf("a session keyring: %w", errno)
	}
	return nil
}

func (s *stage) noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}
