package container

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is set here is set for the calling thread, not for all, as syscall's
// functions do: execve(2) ends the others.

// boundingSet: what isn't kept can't be had again, and uid 0 means nothing.
func (s *stage) boundingSet() error {
	keep := s.kept()
	for n := 0; n < 64; n++ {
		if keep&(1<<n) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
		if err == unix.EINVAL && n > unix.CAP_AUDIT_READ {
			break // the kernel has no more
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", n, err)
		}
	}
	// The ids change without a change of capabilities, which are set apart.
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

// groupsDenied reports whether this is the user namespace of an ordinary user,
// who may not change groups (user_namespaces(7)).
func groupsDenied() bool {
	b, err := os.ReadFile("/proc/self/setgroups")
	return err == nil && string(b) == "deny\n"
}

// ids: the container's user and group, and no other group. An ordinary user's
// supervisor may not change groups; those it has are no ids of its namespace.
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
		return fmt.Errorf("%s %d isn't mapped here: an ordinary user's containers run with the user's own ids", what, id)
	}
	return fmt.Errorf("%s %d: %w", what, id, err)
}

// capabilities: exactly those that are kept, in all sets, so that the program
// has them too.
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

// keyring: an empty session keyring; the one of whoever started the supervisor
// isn't seen.
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
