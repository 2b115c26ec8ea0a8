package files

import (
	"bytes"
	"context"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"
)

var (
	_ fs.NodeGetxattrer    = (*node)(nil)
	_ fs.NodeSetxattrer    = (*node)(nil)
	_ fs.NodeListxattrer   = (*node)(nil)
	_ fs.NodeRemovexattrer = (*node)(nil)
)

// users reports whether an attribute is one of those that have no meaning for the host's
// kernel. user.overlay.* has one for an overlay with userxattr.
func users(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// hasAttributes: only files and directories have attributes of users (xattr(7)).
func (n *node) hasAttributes() bool { return n.Mode() == unix.S_IFREG || n.Mode() == unix.S_IFDIR }

// attributed runs a call on the file's attributes.
func (n *node) attributed(call func(fd int) syscall.Errno) syscall.Errno {
	if !n.hasAttributes() {
		return syscall.ENODATA
	}
	fd, errno := n.open(opened(unix.O_RDONLY), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	return call(fd)
}

// Getxattr implements [fs.NodeGetxattrer]. Others than users' look as if they weren't
// there.
func (n *node) Getxattr(_ context.Context, name string, to []byte) (size uint32, errno syscall.Errno) {
	if !users(name) {
		return 0, syscall.ENODATA
	}
	errno = n.attributed(func(fd int) syscall.Errno {
		got, err := unix.Fgetxattr(fd, name, to)
		size = uint32(max(got, 0))
		return errnoOf(err)
	})
	return size, errno
}

// Setxattr implements [fs.NodeSetxattrer].
func (n *node) Setxattr(_ context.Context, name string, data []byte, flags uint32) syscall.Errno {
	switch {
	case strings.HasPrefix(name, "system."): // access control lists
		return syscall.EOPNOTSUPP
	case !users(name), !n.hasAttributes():
		return syscall.EPERM
	}
	return n.attributed(func(fd int) syscall.Errno { return errnoOf(unix.Fsetxattr(fd, name, data, int(flags))) })
}

// Removexattr implements [fs.NodeRemovexattrer].
func (n *node) Removexattr(_ context.Context, name string) syscall.Errno {
	if !users(name) {
		return syscall.ENODATA
	}
	return n.attributed(func(fd int) syscall.Errno { return errnoOf(unix.Fremovexattr(fd, name)) })
}

// maxXattrs is the longest list of names, XATTR_LIST_MAX (linux/limits.h).
const maxXattrs = 64 << 10

// Listxattr implements [fs.NodeListxattrer].
func (n *node) Listxattr(_ context.Context, to []byte) (uint32, syscall.Errno) {
	var list []byte
	errno := n.attributed(func(fd int) syscall.Errno {
		size, err := unix.Flistxattr(fd, nil)
		if err != nil || size == 0 {
			return errnoOf(err)
		}
		all := make([]byte, maxXattrs)
		if size, err = unix.Flistxattr(fd, all); err != nil {
			return errnoOf(err)
		}
		for name := range bytes.SplitAfterSeq(all[:size], []byte{0}) {
			if users(string(name)) {
				list = append(list, name...)
			}
		}
		return 0
	})
	switch {
	case errno == syscall.ENODATA:
		return 0, 0
	case errno != 0:
		return 0, errno
	case len(to) == 0:
		return uint32(len(list)), 0
	case len(list) > len(to):
		return 0, syscall.ERANGE
	}
	return uint32(copy(to, list)), 0
}
