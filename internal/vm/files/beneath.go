package files

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxPath is the longest path below a share, PATH_MAX of Linux without its NUL.
const maxPath = unix.PathMax - 1

// beneath opens a path below a directory. It follows no link, and can't leave the
// directory whatever is renamed in the meantime.
func beneath(dir int, p string, flags int, mode uint32) (int, syscall.Errno) {
	how := unix.OpenHow{
		Flags:   uint64(flags) | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Mode:    uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	// EAGAIN: a race with a rename, as often as somebody renames.
	for range 32 {
		fd, err := unix.Openat2(dir, p, &how)
		switch err {
		case nil:
			return fd, 0
		case unix.EINTR, unix.EAGAIN:
		default:
			return -1, err.(syscall.Errno)
		}
	}
	return -1, syscall.EAGAIN
}

// place is where a file is: an open directory and the file's name in it, "." for a
// share's root.
type place struct {
	dir  int
	name string
}

func (p place) close() { unix.Close(p.dir) }

// path returns a node's path below the share: "." is the root. A node that is no longer
// in the tree has none.
func (n *node) path() (string, syscall.Errno) {
	var names []string
	length := 0
	for i := n.EmbeddedInode(); !i.IsRoot(); {
		name, parent := i.Parent()
		if parent == nil {
			return "", syscall.ESTALE
		}
		// The bound also ends a walk in a tree that is being changed into a ring.
		if length += len(name) + 1; length > maxPath+1 {
			return "", syscall.ENAMETOOLONG
		}
		names, i = append(names, name), parent
	}
	if len(names) == 0 {
		return ".", 0
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteString(names[i])
		if i > 0 {
			b.WriteByte('/')
		}
	}
	return b.String(), 0
}

// open opens the node's file.
func (n *node) open(flags int, mode uint32) (int, syscall.Errno) {
	p, errno := n.path()
	if errno != 0 {
		return -1, errno
	}
	return beneath(n.share.root, p, flags, mode)
}

// dir opens the node's directory, so that names in it can be used.
func (n *node) dir() (int, syscall.Errno) { return n.open(unix.O_PATH|unix.O_DIRECTORY, 0) }

// place opens the directory in which the node is.
func (n *node) place() (place, syscall.Errno) {
	p, errno := n.path()
	if errno != 0 {
		return place{}, errno
	}
	dir, name := ".", p
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		dir, name = p[:i], p[i+1:]
	}
	fd, errno := beneath(n.share.root, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	return place{fd, name}, errno
}

// errnoOf is the number of a system call's error.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return syscall.EIO
}
