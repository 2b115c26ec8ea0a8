package rmtree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes a tree, also if some of its directories aren't accessible to their
// owner: copies have the modes of their source, images those of their layers, and a
// worker's cache what the worker chose. It touches nothing outside, even if directories
// are replaced concurrently; only somebody who may write to dir's parent could redirect
// it. A missing tree is not an error.
func Remove(dir string) error {
	dir = filepath.Clean(dir)
	parent, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if err == unix.ENOENT {
			return nil
		}
		return &os.PathError{Op: "open", Path: filepath.Dir(dir), Err: err}
	}
	defer unix.Close(parent)
	r := &remover{ctx: context.Background(), top: -1}
	if err := r.remove(parent, filepath.Base(dir), 0); err != nil {
		return &os.PathError{Op: "remove", Path: dir, Err: err}
	}
	return nil
}

// Empty removes what is in a directory until ctx ends, and returns how much it
// removed. It makes the directory accessible to its owner.
func Empty(ctx context.Context, dir string) (removed int, err error) {
	if err := openUp(unix.AT_FDCWD, dir); err != nil {
		return 0, &os.PathError{Op: "chmod", Path: dir, Err: err}
	}
	fd, err := unix.Open(dir, dirFlags, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	r := &remover{ctx: ctx, top: fd}
	if err := r.clear(fd, 1); err != nil {
		return r.removed, &os.PathError{Op: "empty", Path: dir, Err: err}
	}
	return r.removed, nil
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// maxOpen is how many levels are open at a time. A directory that is deeper is moved to
// the top first: nobody has a descriptor for each level of a tree made to be deep.
const maxOpen = 200

// remover is one removal. It goes by descriptors and follows no link.
type remover struct {
	ctx     context.Context
	top     int // directory to which deep ones are moved; -1: none is open yet
	moved   int
	removed int
	gone    int // entries of directories that aren't there any more, whoever removed them
}

// remove removes an entry of a directory.
func (r *remover) remove(fd int, name string, depth int) error {
	err := unix.Unlinkat(fd, name, 0)
	if err == unix.EACCES && depth > 0 && unix.Fchmod(fd, 0o700) == nil { // its directory is closed
		err = unix.Unlinkat(fd, name, 0)
	}
	switch err {
	case nil:
		r.removed++
		return nil
	case unix.ENOENT:
		return nil
	case unix.EISDIR, unix.EPERM:
	default:
		return err
	}
	why := err
	err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	switch err {
	case nil:
		r.removed++
		return nil
	case unix.ENOENT:
		return nil
	case unix.ENOTDIR: // it was replaced, or can't be removed
		return why
	case unix.ENOTEMPTY, unix.EEXIST, unix.EACCES:
	default:
		return err
	}
	if depth >= maxOpen {
		return r.move(fd, name)
	}
	child, err := unix.Openat(fd, name, dirFlags, 0)
	if err == unix.EACCES {
		if err = openUp(fd, name); err == nil {
			child, err = unix.Openat(fd, name, dirFlags, 0)
		}
	}
	if err != nil {
		return gone(err)
	}
	defer unix.Close(child)
	if r.top < 0 {
		r.top = child
		defer func() { r.top = -1 }()
	}
	if err := r.clear(child, depth+1); err != nil {
		return err
	}
	err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	if err == nil {
		r.removed++
	}
	return gone(err)
}

// move moves a directory to the top, which is cleared again until it is empty.
func (r *remover) move(fd int, name string) error {
	if err := openUp(fd, name); err != nil { // its ".." changes
		return gone(err)
	}
	for {
		r.moved++
		err := unix.Renameat(fd, name, r.top, ".removing-"+strconv.Itoa(r.moved))
		switch err {
		case unix.EEXIST, unix.ENOTEMPTY, unix.ENOTDIR: // only an empty directory is replaced
		default:
			return gone(err)
		}
	}
}

// maxPasses is how often a directory is gone through that others fill again.
const maxPasses = 100

// clear removes what is in a directory: again where there is something new, such as
// what was moved to it, as long as some is gone each time.
func (r *remover) clear(fd, depth int) error {
	for passes := 0; ; passes++ {
		before, moved := r.gone, r.moved
		found, err := r.pass(fd, depth)
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case !found:
			return err
		case r.moved > moved:
			passes = 0
		case r.gone == before || passes == maxPasses:
			return cmp.Or(err, error(unix.ENOTEMPTY))
		}
	}
}

// pass goes once through a directory, and reports whether there was anything. It goes
// on after an error, and returns the first.
func (r *remover) pass(fd, depth int) (found bool, err error) {
	list, err := unix.Openat(fd, ".", dirFlags, 0) // with a position of its own
	if err == unix.EACCES {
		if err = unix.Fchmod(fd, 0o700); err == nil {
			list, err = unix.Openat(fd, ".", dirFlags, 0)
		}
	}
	if err != nil {
		return false, gone(err)
	}
	f := os.NewFile(uintptr(list), "/proc/self/fd/"+strconv.Itoa(list))
	defer f.Close()
	var first error
	for {
		names, err := f.Readdirnames(batch)
		for i, name := range names {
			found = true
			if i%64 == 0 && r.ctx.Err() != nil {
				return found, r.ctx.Err()
			}
			err := r.remove(fd, name, depth)
			switch {
			case err == nil:
				r.gone++
			case first == nil:
				first = fmt.Errorf("%.80q: %w", name, err)
			}
		}
		if len(names) == 0 {
			return found, first
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && first == nil {
			first = err
		}
	}
}
