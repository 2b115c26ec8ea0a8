package files

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// file is a regular file that the guest has open.
type file struct {
	node    *node
	version uint64       // when it was opened
	mu      sync.RWMutex // a descriptor that is being used isn't closed, and used again
	fd      int          // -1: released
}

var (
	_ fs.FileReader    = (*file)(nil)
	_ fs.FileWriter    = (*file)(nil)
	_ fs.FileReleaser  = (*file)(nil)
	_ fs.FileFlusher   = (*file)(nil)
	_ fs.FileFsyncer   = (*file)(nil)
	_ fs.FileAllocater = (*file)(nil)
	_ fs.FileLseeker   = (*file)(nil)
)

// newFile owns the descriptor, also if it refuses it: only regular files can't block, and
// only the node's is what the guest means.
func newFile(fd int, n *node) (*file, syscall.Errno) {
	st, errno := stat(fd, "")
	if errno == 0 && st.Mode&unix.S_IFMT != unix.S_IFREG {
		errno = syscall.EPERM
	}
	if errno == 0 {
		errno = n.check(&st)
	}
	if errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	return &file{node: n, fd: fd, version: version(&st, time.Now())}, 0
}

// with runs a call while the file stays open.
func (f *file) with(call func(fd int) syscall.Errno) syscall.Errno {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return syscall.EBADF
	}
	return call(f.fd)
}

// Read implements [fs.FileReader]. The guest has heard that the file is open, and has
// forgotten what it had of another version.
func (f *file) Read(_ context.Context, to []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.node.read.Store(f.version)
	var n int
	errno := f.with(func(fd int) syscall.Errno {
		var err error
		n, err = unix.Pread(fd, to, off)
		return errnoOf(err)
	})
	return fuse.ReadResultData(to[:max(n, 0)]), errno
}

// Write implements [fs.FileWriter].
func (f *file) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	var n int
	errno := f.with(func(fd int) syscall.Errno {
		var err error
		n, err = unix.Pwrite(fd, data, off)
		return errnoOf(err)
	})
	return uint32(max(n, 0)), errno
}

// Release implements [fs.FileReleaser].
func (f *file) Release(context.Context) syscall.Errno {
	f.node.released(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd >= 0 {
		unix.Close(f.fd)
	}
	f.fd = -1
	return 0
}

// Flush implements [fs.FileFlusher]: what close(2) would say, of a copy.
func (f *file) Flush(context.Context) syscall.Errno {
	return f.with(func(fd int) syscall.Errno {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return errnoOf(err)
		}
		return errnoOf(unix.Close(dup))
	})
}

// Fsync implements [fs.FileFsyncer].
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	return f.with(func(fd int) syscall.Errno { return errnoOf(unix.Fsync(fd)) })
}

// Allocate implements [fs.FileAllocater].
func (f *file) Allocate(_ context.Context, off, size uint64, mode uint32) syscall.Errno {
	return f.with(func(fd int) syscall.Errno { return errnoOf(unix.Fallocate(fd, mode, int64(off), int64(size))) })
}

// Lseek implements [fs.FileLseeker]: data and holes; a guest's kernel does the rest.
func (f *file) Lseek(_ context.Context, off uint64, whence uint32) (at uint64, errno syscall.Errno) {
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, syscall.EINVAL
	}
	errno = f.with(func(fd int) syscall.Errno {
		to, err := unix.Seek(fd, int64(off), int(whence))
		at = uint64(max(to, 0))
		return errnoOf(err)
	})
	return at, errno
}
