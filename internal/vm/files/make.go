package files

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

var (
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeTmpfiler       = (*node)(nil)
	_ fs.NodeMkdirer        = (*node)(nil)
	_ fs.NodeMknoder        = (*node)(nil)
	_ fs.NodeSymlinker      = (*node)(nil)
	_ fs.NodeLinker         = (*node)(nil)
	_ fs.NodeUnlinker       = (*node)(nil)
	_ fs.NodeRmdirer        = (*node)(nil)
	_ fs.NodeRenamer        = (*node)(nil)
	_ fs.NodeCopyFileRanger = (*node)(nil)
)

// in runs a change of the node's directory.
func (n *node) in(change func(dir int) error) syscall.Errno {
	dir, errno := n.dir()
	if errno != 0 {
		return errno
	}
	defer unix.Close(dir)
	return errnoOf(change(dir))
}

// entry makes something in the node's directory, and returns its node.
func (n *node) entry(ctx context.Context, name string, out *fuse.EntryOut, create func(dir int) error) (child *fs.Inode, errno syscall.Errno) {
	dir, errno := n.dir()
	if errno != 0 {
		return nil, errno
	}
	defer unix.Close(dir)
	if err := create(dir); err != nil {
		return nil, errnoOf(err)
	}
	return n.child(ctx, dir, name, out)
}

// Mkdir implements [fs.NodeMkdirer].
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child, errno := n.entry(ctx, name, out, func(dir int) error { return unix.Mkdirat(dir, name, mode&0o7777) })
	if errno == 0 && child.Mode() != unix.S_IFDIR {
		return nil, syscall.ESTALE // it has been replaced since
	}
	return child, errno
}

// Mknod implements [fs.NodeMknoder]: files, FIFOs and sockets. A device is refused, also
// the one with the numbers 0, 0, which needs no privilege: an overlay takes it for a
// whiteout.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
		return n.entry(ctx, name, out, func(dir int) error { return unix.Mknodat(dir, name, withoutID(mode), 0) })
	}
	return nil, syscall.EPERM
}

// Symlink implements [fs.NodeSymlinker].
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.entry(ctx, name, out, func(dir int) error { return unix.Symlinkat(target, dir, name) })
}

// Link implements [fs.NodeLinker]. The target is in the same share, as its node is.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	at, errno := target.(*node).place()
	if errno != 0 {
		return nil, errno
	}
	defer at.close()
	return n.entry(ctx, name, out, func(dir int) error { return unix.Linkat(at.dir, at.name, dir, name, 0) })
}

// Unlink implements [fs.NodeUnlinker].
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.in(func(dir int) error { return unix.Unlinkat(dir, name, 0) })
}

// Rmdir implements [fs.NodeRmdirer].
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.in(func(dir int) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// Rename implements [fs.NodeRenamer]. It leaves no whiteout, which is a device.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return syscall.EINVAL
	}
	to, errno := parent.(*node).dir()
	if errno != 0 {
		return errno
	}
	defer unix.Close(to)
	return n.in(func(dir int) error { return unix.Renameat2(dir, name, to, newName, uint(flags)) })
}

// Create implements [fs.NodeCreater].
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	dir, errno := n.dir()
	if errno != 0 {
		return nil, nil, 0, errno
	}
	defer unix.Close(dir)
	fd, errno := beneath(dir, name, opened(flags)|unix.O_CREAT, withoutID(mode)&0o7777)
	return n.created(ctx, fd, errno, out)
}

// Tmpfile implements [fs.NodeTmpfiler].
func (n *node) Tmpfile(ctx context.Context, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	fd, errno := n.open(opened(flags)&^unix.O_TRUNC|unix.O_TMPFILE, withoutID(mode)&0o7777)
	return n.created(ctx, fd, errno, out)
}

// created returns the node and the open file of a descriptor.
func (n *node) created(ctx context.Context, fd int, errno syscall.Errno, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno != 0 {
		return nil, nil, 0, errno
	}
	child, errno := n.child(ctx, fd, "", out)
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, 0, errno
	}
	f, errno := child.Operations().(*node).use(fd)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return child, f, 0, 0
}

// CopyFileRange implements [fs.NodeCopyFileRanger].
func (n *node) CopyFileRange(_ context.Context, from fs.FileHandle, fromOff uint64, _ *fs.Inode, to fs.FileHandle, toOff, size, _ uint64) (copied uint32, errno syscall.Errno) {
	in, ok := from.(*file)
	out, ok2 := to.(*file)
	if !ok || !ok2 {
		return 0, syscall.EBADF
	}
	fromAt, toAt := int64(fromOff), int64(toOff)
	errno = in.with(func(fd int) syscall.Errno {
		return out.with(func(outFD int) syscall.Errno {
			n, err := unix.CopyFileRange(fd, &fromAt, outFD, &toAt, int(min(size, maxCopy)), 0)
			copied = uint32(max(n, 0))
			return errnoOf(err)
		})
	})
	return copied, errno
}

// maxCopy is how many bytes one request copies at most: it keeps its place for as long.
const maxCopy = 64 << 20
