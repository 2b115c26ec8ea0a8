package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// beneath opens a path below a directory without following any link, so that links of
// an image lead nowhere (openat2(2), Linux 5.6).
func beneath(dir int, p string, flags int) (int, error) {
	if p == "" {
		p = "."
	}
	for {
		fd, err := unix.Openat2(dir, p, &unix.OpenHow{
			Flags:   uint64(flags) | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
		})
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// place is the location of an entry: a directory's descriptor and a name in it. The
// extractor owns the descriptor and closes it at the next place.
type place struct {
	dir  int
	base string
}

// at returns the place of a path, which must not be "". Missing parents are created
// with create; otherwise the error is [fs.ErrNotExist].
func (x *extractor) at(p string, create bool) (place, error) {
	dir, base := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	if x.open >= 0 && x.openPath == dir {
		return place{x.open, base}, nil
	}
	fd, err := beneath(x.root, dir, unix.O_PATH|unix.O_DIRECTORY)
	if err == unix.ENOENT && create {
		if err = x.mkdirAll(dir); err == nil {
			fd, err = beneath(x.root, dir, unix.O_PATH|unix.O_DIRECTORY)
		}
	}
	switch err {
	case nil:
	case unix.ENOENT:
		return place{}, fs.ErrNotExist
	case unix.ELOOP:
		return place{}, fmt.Errorf("%q goes through a symbolic link", p)
	case unix.ENOTDIR:
		return place{}, fmt.Errorf("%q: a parent is not a directory", p)
	case unix.ENOSYS:
		return place{}, errors.New("the kernel has no openat2: Linux 5.6 or later is needed")
	default:
		return place{}, fmt.Errorf("open the directory of %q: %w", p, err)
	}
	x.forget()
	x.open, x.openPath = fd, dir
	return place{fd, base}, nil
}

// forget closes the cached directory, which may no longer exist.
func (x *extractor) forget() {
	if x.open >= 0 {
		unix.Close(x.open)
	}
	x.open, x.openPath = -1, ""
}

// mkdirAll makes directories without an entry.
func (x *extractor) mkdirAll(p string) error {
	at, err := x.at(p, true)
	if err != nil {
		return err
	}
	if err := x.count(); err != nil {
		return err
	}
	if err := unix.Mkdirat(at.dir, at.base, 0o700); err != nil {
		return fmt.Errorf("make %q: %w", p, err)
	}
	x.made(p, &metadata{mode: 0o755, time: epoch})
	return nil
}

// remove removes a path, if it exists. Paths in keep stay, with their parents; nil
// keeps nothing.
func (x *extractor) remove(at place, p string, keep map[string]struct{}) error {
	if _, ok := keep[p]; !ok {
		switch err := unix.Unlinkat(at.dir, at.base, 0); err {
		case nil:
			return nil
		case unix.ENOENT:
			return nil
		case unix.EISDIR, unix.EPERM: // a directory
		default:
			return fmt.Errorf("remove %q: %w", p, err)
		}
	}
	if err := x.removeBelow(at, p, keep); err != nil {
		return err
	}
	if _, ok := keep[p]; ok {
		return nil
	}
	switch err := unix.Unlinkat(at.dir, at.base, unix.AT_REMOVEDIR); {
	case err == nil:
		delete(x.dirs, p)
		return nil
	case err == unix.ENOTEMPTY && keep != nil:
		return nil
	default:
		return fmt.Errorf("remove %q: %w", p, err)
	}
}

// removeBelow removes the content of a directory; it does nothing for a file. It
// doesn't follow links.
func (x *extractor) removeBelow(at place, p string, keep map[string]struct{}) error {
	fd, err := unix.Openat(at.dir, at.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP || err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %q: %w", p, err)
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("read %q: %w", p, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := x.remove(place{fd, name}, path.Join(p, name), keep); err != nil {
			return err
		}
	}
	return nil
}
