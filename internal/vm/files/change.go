package files

import (
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each change is made through the file that the guest has open, if any, else to what is
// in its place, never to where a link leads.

func chown(at place, f *file, uid, gid int) syscall.Errno {
	if f != nil {
		return f.with(func(fd int) syscall.Errno { return errnoOf(unix.Fchown(fd, uid, gid)) })
	}
	return errnoOf(unix.Fchownat(at.dir, at.name, uid, gid, unix.AT_SYMLINK_NOFOLLOW))
}

func chmod(at place, f *file, mode uint32) syscall.Errno {
	if f != nil {
		return f.with(func(fd int) syscall.Errno { return errnoOf(unix.Fchmod(fd, mode)) })
	}
	// fchmodat2(2), Linux 6.6.
	err := unix.Fchmodat(at.dir, at.name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.ENOSYS && err != unix.EOPNOTSUPP {
		return errnoOf(err)
	}
	return chmodByProc(at, mode)
}

// chmodByProc is chmod for kernels without fchmodat2: the only way that needs no permission
// to read the file is the name that a descriptor of its place has in /proc.
func chmodByProc(at place, mode uint32) syscall.Errno {
	fd, errno := beneath(at.dir, at.name, unix.O_PATH, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	st, errno := stat(fd, "")
	if errno != 0 {
		return errno
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return syscall.EOPNOTSUPP
	}
	return errnoOf(unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode))
}

func (n *node) truncate(f *file, size int64) syscall.Errno {
	set := func(fd int) syscall.Errno { return errnoOf(unix.Ftruncate(fd, size)) }
	if f != nil {
		return f.with(set)
	}
	if n.Mode() != unix.S_IFREG {
		return syscall.EINVAL
	}
	fd, errno := n.open(opened(unix.O_WRONLY), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	return set(fd)
}

func utimes(at place, f *file, times [2]unix.Timespec) syscall.Errno {
	if f != nil {
		return f.with(func(fd int) syscall.Errno {
			// utimensat(2) with a null path, which package unix lacks.
			_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
			return errno
		})
	}
	return errnoOf(unix.UtimesNanoAt(at.dir, at.name, times[:], unix.AT_SYMLINK_NOFOLLOW))
}
