package rmtree

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// MaxDepth is how deep directories may be nested: a path of this depth is longer than
// a program can name (PATH_MAX).
const MaxDepth = 2048

var (
	// ErrAbove means that the size is above the limit.
	ErrAbove = errors.New("the size is above the limit")
	// ErrDeep means that directories are nested more than [MaxDepth] deep.
	ErrDeep = errors.New("its directories are nested too deep")
)

// Size returns the bytes that a directory takes on disk, without those of directories
// that can't be read. A file with several links counts once: with all of them inside,
// each has its share. Links are not followed.
func Size(ctx context.Context, dir string) (int64, error) { return measure(ctx, dir, -1, false) }

// SizeAbove returns [ErrAbove] as soon as the size of a directory is above a limit. It
// makes directories readable whose owner has closed them.
func SizeAbove(ctx context.Context, dir string, limit int64) error {
	_, err := measure(ctx, dir, limit, true)
	return err
}

func measure(ctx context.Context, dir string, limit int64, open bool) (int64, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	w := &walk{ctx: ctx, limit: limit, open: open}
	err = w.dir(fd, 1)
	return w.total, err
}

// walk is one measurement.
type walk struct {
	ctx   context.Context
	limit int64 // negative: none
	open  bool
	total int64
	seen  int
}

const (
	// batch bounds the names that are held per level.
	batch = 1024
	// unit is that of st_blocks (stat(2)).
	unit = 512
)

// dir adds what is in a directory, whose descriptor it closes.
func (w *walk) dir(fd, depth int) error {
	f := os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd))
	defer f.Close()
	if depth > MaxDepth {
		return ErrDeep
	}
	for {
		names, err := f.Readdirnames(batch)
		for _, name := range names {
			if err := w.entry(fd, name, depth); err != nil {
				return err
			}
		}
		if err == io.EOF || len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walk) entry(fd int, name string, depth int) error {
	if w.seen++; w.seen%batch == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return gone(err)
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	size := st.Blocks * unit
	if !isDir && st.Nlink > 1 {
		size /= int64(st.Nlink)
	}
	if w.total += size; w.limit >= 0 && w.total > w.limit {
		return ErrAbove
	}
	if !isDir {
		return nil
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	child, err := unix.Openat(fd, name, flags, 0)
	if err == unix.EACCES {
		if !w.open {
			return nil
		}
		if err = openUp(fd, name); err == nil {
			child, err = unix.Openat(fd, name, flags, 0)
		}
	}
	if err != nil {
		return gone(err)
	}
	return w.dir(child, depth+1)
}

// gone accepts what was removed or replaced concurrently.
func gone(err error) error {
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil
	}
	return err
}

// openUp makes a directory accessible to its owner. It follows no link.
func openUp(fd int, name string) error {
	at, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(at), 0o700) // fchmod refuses O_PATH
}
