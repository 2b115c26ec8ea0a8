package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// put creates an entry at a path, replacing an existing one.
func (x *extractor) put(p string, create func(place) error) (place, error) {
	if p == "" {
		return place{}, errors.New("the root of the layer is not a directory")
	}
	at, err := x.at(p, true)
	if err != nil {
		return at, err
	}
	if err = create(at); err == unix.EEXIST {
		// Of a layer below, or earlier in this one: the later entry wins.
		if err = x.remove(at, p, nil); err != nil {
			return at, err
		}
		err = create(at)
	}
	if err != nil {
		return at, fmt.Errorf("make %q: %w", p, err)
	}
	x.made(p, nil)
	return at, nil
}

func (x *extractor) own(at place, p string, m *metadata) error {
	if !x.chown {
		return nil
	}
	err := unix.Fchownat(at.dir, at.base, m.uid, m.gid, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.EINVAL {
		return fmt.Errorf("%q belongs to %d:%d, and this user namespace has no such id", p, m.uid, m.gid)
	}
	if err != nil {
		return fmt.Errorf("give %q its owner: %w", p, err)
	}
	return nil
}

func (x *extractor) directory(p string, m *metadata) error {
	if p == "" {
		x.made(p, m)
		return x.own(place{x.root, "."}, "/", m)
	}
	at, err := x.put(p, func(at place) error {
		err := unix.Mkdirat(at.dir, at.base, 0o700)
		if err != unix.EEXIST {
			return err
		}
		var st unix.Stat_t
		if serr := unix.Fstatat(at.dir, at.base, &st, unix.AT_SYMLINK_NOFOLLOW); serr == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil // directories of layers are merged
		}
		return err
	})
	if err != nil {
		return err
	}
	x.made(p, m)
	return x.own(at, p, m)
}

func (x *extractor) file(p string, m *metadata, size int64, r io.Reader) error {
	if size < 0 || size > x.limits.Bytes-x.bytes {
		return fmt.Errorf("%q: the image is larger than %d bytes", p, x.limits.Bytes)
	}
	var f *os.File
	at, err := x.put(p, func(at place) error {
		fd, err := unix.Openat(at.dir, at.base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			f = os.NewFile(uintptr(fd), p)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	// Holes of a sparse archive entry are cheap to send: they stay holes, and copying
	// them ends with the context.
	n, err := io.CopyBuffer(holes{f}, &canceled{x.ctx, r}, x.buffer)
	x.bytes += n
	if err == nil {
		err = f.Truncate(n)
	}
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", p, err)
	}
	if err := x.own(at, p, m); err != nil {
		return err
	}
	if err := unix.Fchmod(int(f.Fd()), m.mode); err != nil {
		return fmt.Errorf("set the mode of %q: %w", p, err)
	}
	if err := setTime(at, m.time); err != nil {
		return fmt.Errorf("set the time of %q: %w", p, err)
	}
	return f.Close()
}

func (x *extractor) symlink(p string, m *metadata, target string) error {
	if target == "" || len(target) > x.limits.Name || strings.ContainsRune(target, 0) {
		return fmt.Errorf("%q is a symbolic link to %.40q, which is not a valid path", p, target)
	}
	at, err := x.put(p, func(at place) error { return unix.Symlinkat(target, at.dir, at.base) })
	if err != nil {
		return err
	}
	if err := x.own(at, p, m); err != nil {
		return err
	}
	if err := setTime(at, m.time); err != nil {
		return fmt.Errorf("set the time of %q: %w", p, err)
	}
	return nil
}

// link makes a hard link to a file of this image, which keeps its owner, mode and time.
func (x *extractor) link(p, target string) error {
	t, err := x.limits.entryPath(target)
	if err != nil {
		return fmt.Errorf("%q is a hard link: %w", p, err)
	}
	if t == "" || t == p {
		return fmt.Errorf("%q is a hard link to %q, which is not a file", p, target)
	}
	dir, base := path.Split(t)
	fd, err := beneath(x.root, strings.TrimSuffix(dir, "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		defer unix.Close(fd)
		var st unix.Stat_t
		if err = unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFLNK {
				return fmt.Errorf("%q is a hard link to %q, which is not a file", p, target)
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q is a hard link to %q, which does not exist in the image", p, target)
	case err == unix.ELOOP:
		return fmt.Errorf("%q is a hard link to %q, through a symbolic link", p, target)
	case err != nil:
		return fmt.Errorf("%q is a hard link to %q: %w", p, target, err)
	}
	_, err = x.put(p, func(at place) error { return unix.Linkat(fd, base, at.dir, at.base, 0) })
	return err
}

// holes writes a new file with holes in place of zeros.
type holes struct{ f *os.File }

func (h holes) Write(p []byte) (int, error) {
	if bytes.Count(p, []byte{0}) < len(p) {
		return h.f.Write(p)
	}
	_, err := h.f.Seek(int64(len(p)), io.SeekCurrent)
	return len(p), err
}
