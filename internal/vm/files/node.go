package files

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file that the guest knows.
type node struct {
	fs.Inode
	share *share
	files []*file       // that are open, guarded by the share
	read  atomic.Uint64 // the version that the guest has read from
}

// use takes over an open descriptor of the node's file.
func (n *node) use(fd int) (*file, syscall.Errno) {
	f, errno := newFile(fd, n)
	if errno == 0 {
		n.share.mu.Lock()
		defer n.share.mu.Unlock()
		n.files = append(n.files, f)
	}
	return f, errno
}

// anyOpen returns an open file of the node, or nil.
func (n *node) anyOpen() *file {
	n.share.mu.Lock()
	defer n.share.mu.Unlock()
	if len(n.files) == 0 {
		return nil
	}
	return n.files[0]
}

func (n *node) released(f *file) {
	n.share.mu.Lock()
	defer n.share.mu.Unlock()
	n.files = slices.DeleteFunc(n.files, func(o *file) bool { return o == f })
}

var (
	_ fs.NodeLookuper       = (*node)(nil)
	_ fs.NodeGetattrer      = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeReadlinker     = (*node)(nil)
	_ fs.NodeStatfser       = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
)

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// stat looks at a file itself, not at where a link leads; name "" is the descriptor's.
func stat(dir int, name string) (st unix.Statx_t, errno syscall.Errno) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	err := unix.Statx(dir, name, flags, statMask, &st)
	return st, errnoOf(err)
}

// identity is what makes a file the same one for the guest: device, inode number, when it
// was made, as numbers are used again, and the mount that it is in. A directory that is mounted
// in two places is two directories there, as a kernel has each in one place alone.
func (s *share) identity(st *unix.Statx_t) fs.StableAttr {
	dev := uint64(st.Dev_major)<<32 | uint64(st.Dev_minor)
	id := fs.StableAttr{Mode: uint32(st.Mode) & unix.S_IFMT, Ino: st.Ino ^ dev ^ s.dev, Gen: 1}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Gen = uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
	}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		id.Gen += st.Mnt_id * 0x9e3779b97f4a7c15 // so that no time of another one is near
	}
	if id.Reserved() {
		id.Ino--
	}
	return id
}

// attributes fills in what stat found. The number is the one of the whole share.
func (s *share) attributes(out *fuse.Attr, st *unix.Statx_t) {
	*out = fuse.Attr{
		Ino: s.identity(st).Ino, Size: st.Size, Blocks: st.Blocks,
		Atime: uint64(st.Atime.Sec), Atimensec: st.Atime.Nsec,
		Mtime: uint64(st.Mtime.Sec), Mtimensec: st.Mtime.Nsec,
		Ctime: uint64(st.Ctime.Sec), Ctimensec: st.Ctime.Nsec,
		Mode: uint32(st.Mode), Nlink: st.Nlink, Owner: fuse.Owner{Uid: st.Uid, Gid: st.Gid},
		Rdev: uint32(unix.Mkdev(st.Rdev_major, st.Rdev_minor)), Blksize: st.Blksize,
	}
}

// child returns the node of what is there under a name, and its attributes.
func (n *node) child(ctx context.Context, dir int, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	st, errno := stat(dir, name)
	if errno != 0 {
		return nil, errno
	}
	n.share.attributes(&out.Attr, &st)
	return n.NewInode(ctx, &node{share: n.share}, n.share.identity(&st)), 0
}

// Lookup implements [fs.NodeLookuper].
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	dir, errno := n.dir()
	if errno != 0 {
		return nil, errno
	}
	defer unix.Close(dir)
	return n.child(ctx, dir, name, out)
}

// Getattr implements [fs.NodeGetattrer].
func (n *node) Getattr(_ context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	st, errno := n.stat(f)
	if errno != 0 {
		return errno
	}
	n.share.attributes(&out.Attr, &st)
	return 0
}

func (n *node) stat(f fs.FileHandle) (st unix.Statx_t, errno syscall.Errno) {
	if f, ok := f.(*file); ok {
		errno = f.with(func(fd int) (errno syscall.Errno) { st, errno = stat(fd, ""); return })
		return st, errno
	}
	at, errno := n.place()
	if errno != 0 {
		return st, errno
	}
	defer at.close()
	if st, errno = stat(at.dir, at.name); errno == 0 {
		errno = n.check(&st)
	}
	return st, errno
}

// check reports a file that has taken the node's place: a kernel that hears ESTALE looks
// the name up again.
func (n *node) check(st *unix.Statx_t) syscall.Errno {
	if n.share.identity(st) != n.StableAttr() {
		return syscall.ESTALE
	}
	return 0
}

// Readlink implements [fs.NodeReadlinker].
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	at, errno := n.place()
	if errno != 0 {
		return nil, errno
	}
	defer at.close()
	b := make([]byte, unix.PathMax)
	size, err := unix.Readlinkat(at.dir, at.name, b)
	return b[:max(size, 0)], errnoOf(err)
}

// Statfs implements [fs.NodeStatfser].
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(n.share.root, &st); err != nil {
		return errnoOf(err)
	}
	out.FromStatfsT(&st)
	return 0
}

// openFlags are those of open(2) that reach the host. O_APPEND writes at the end that the
// file has on the host.
const openFlags = unix.O_ACCMODE | unix.O_TRUNC | unix.O_APPEND | unix.O_EXCL | unix.O_SYNC | unix.O_NOATIME

// opened are a file's flags: one that isn't regular must not block, or be a terminal.
func opened(flags uint32) int {
	return int(flags)&openFlags | unix.O_NONBLOCK | unix.O_NOCTTY
}

// Open implements [fs.NodeOpener]. Only regular files are opened: a guest's kernel has
// FIFOs, sockets and devices of its own.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if n.Mode() != unix.S_IFREG {
		return nil, 0, syscall.EPERM
	}
	fd, errno := n.open(opened(flags)&^unix.O_EXCL, 0)
	if errno != 0 {
		return nil, 0, errno
	}
	f, errno := n.use(fd)
	if errno != 0 {
		return nil, 0, errno
	}
	return f, f.flags(flags), 0
}

// OpendirHandle implements [fs.NodeOpendirHandler].
func (n *node) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fd, errno := n.open(unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		return nil, 0, errno
	}
	d, errno := fs.NewLoopbackDirStreamFd(fd)
	return d, 0, errno
}

// Setattr implements [fs.NodeSetattrer]. A kernel says which open file it is about only
// when it sets a size; one without a name is found by any that is open.
func (n *node) Setattr(_ context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	at, errno := n.place()
	open, _ := f.(*file)
	if open == nil && errno != 0 {
		open = n.anyOpen()
	}
	switch {
	case errno == 0:
		defer at.close()
	case open == nil:
		return errno
	}
	if uid, gid, ok := owner(in); ok {
		if errno := chown(at, open, uid, gid); errno != 0 {
			return errno
		}
	}
	if mode, ok := in.GetMode(); ok {
		if errno := chmod(at, open, withoutID(mode|n.Mode())&0o7777); errno != 0 {
			return errno
		}
	}
	// The size first: a time that is set has to stay.
	if size, ok := in.GetSize(); ok {
		if errno := n.truncate(open, int64(size)); errno != 0 {
			return errno
		}
	}
	if times, ok := times(in); ok {
		if errno := utimes(at, open, times); errno != 0 {
			return errno
		}
	}
	if open != nil {
		f = open
	}
	return n.Getattr(context.Background(), f, out)
}

// withoutID drops the setuid and setgid bits of what isn't a directory: on the host a
// file's owner may be the user, and its directory may be mounted without nosuid.
func withoutID(mode uint32) uint32 {
	if mode&unix.S_IFMT == unix.S_IFDIR {
		return mode
	}
	return mode &^ (unix.S_ISUID | unix.S_ISGID)
}

func owner(in *fuse.SetAttrIn) (uid, gid int, ok bool) {
	uid, gid = -1, -1
	if v, ok := in.GetUID(); ok {
		uid = int(v)
	}
	if v, ok := in.GetGID(); ok {
		gid = int(v)
	}
	return uid, gid, uid != -1 || gid != -1
}

func times(in *fuse.SetAttrIn) (ts [2]unix.Timespec, ok bool) {
	for i, get := range []func() (time.Time, bool){in.GetATime, in.GetMTime} {
		t, set := get()
		ts[i] = unix.Timespec{Nsec: unix.UTIME_OMIT}
		if set {
			ts[i] = unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
		}
		ok = ok || set
	}
	return ts, ok
}
