package files

import (
	"hash/maphash"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A guest's kernel forgets what it has read of a file when that is opened again, unless it
// is told to keep it: each start of a program would read it and its libraries. It is told so
// where the file is as it was at an earlier open, after which the guest has read.

// settled is how old a change of a file has to be: a later one has another time then. FAT's
// are two seconds apart.
const settled = 3 * time.Second

var seed = maphash.MakeSeed()

// version stands for what a file has: another size or time of a change is another version.
// Zero: it was changed just now, and may be again with the same time.
func version(st *unix.Statx_t, now time.Time) uint64 {
	if now.Sub(time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec))) < settled {
		return 0
	}
	return max(maphash.Comparable(seed, struct {
		size         uint64
		mtime, ctime unix.StatxTimestamp
	}{st.Size, st.Mtime, st.Ctime}), 1)
}

// flags are what the guest's kernel is told of a file that it opens: what it keeps, and that
// closing one that can't be written is no request.
func (f *file) flags(opened uint32) (flags uint32) {
	if f.version != 0 && f.version == f.node.read.Load() {
		flags |= fuse.FOPEN_KEEP_CACHE
	}
	if opened&unix.O_ACCMODE == unix.O_RDONLY {
		flags |= fuse.FOPEN_NOFLUSH
	}
	return flags
}
