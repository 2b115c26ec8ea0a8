package files

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// maxLinks of symbolic links that are followed, as in path_resolution(7).
const maxLinks = 40

// target is where a file is written: a name in a directory, after symbolic
// links, and what is there.
type target struct {
	dir  *os.File // a handle (O_PATH)
	name string
	old  int // a handle of the file that is there, -1 without one
	st   *unix.Stat_t
	made []string // directories that were made for it
	// inPlace: only the file is the worker's, not the directory.
	inPlace bool
}

// resolve finds where to write. A symbolic link leads to what it points to, be
// it there or not. With mkdir, directories that miss are made.
func resolve(given string, mkdir bool) (_ *target, err error) {
	if err := checkPath(given); err != nil {
		return nil, err
	}
	t := &target{old: -1}
	defer func() {
		if err != nil {
			t.undo()
			t.close()
			err = explain(given, err)
		}
	}()
	at, rest := unix.AT_FDCWD, given
	if m := view.mountAt(given); m != nil {
		if !m.file {
			return t, errDirectory
		}
		return t, t.ofMount(m)
	}
	for range maxLinks {
		parent, name := path.Split(rest)
		if name == "" || name == "." || name == ".." {
			return t, errDirectory
		}
		d, err := t.open(at, parent, mkdir)
		if err != nil {
			return t, err
		}
		t.closeDir()
		t.dir, t.name = d, name
		if err := view.writable(int(d.Fd()), name, given); err != nil {
			return t, err
		}
		at = int(d.Fd())
		if rest, err = readlink(at, name); err != nil {
			return t, err
		}
		if rest == "" {
			return t, t.look()
		}
	}
	return t, unix.ELOOP
}

// ofMount takes the file of a mount: its directory is not the worker's, so
// it is written in place.
func (t *target) ofMount(m *mount) (err error) {
	if m.ReadOnly {
		return unix.EROFS
	}
	if t.old, err = m.open(".", unix.O_PATH); err != nil {
		t.old = -1
		return err
	}
	t.name, t.inPlace = m.Source, true
	t.st, err = regular(t.old)
	return err
}

// open gives a handle of a directory that is on no procfs.
func (t *target) open(at int, parent string, mkdir bool) (*os.File, error) {
	if parent == "" {
		parent = "."
	}
	fd, err := handle(at, parent, unix.O_DIRECTORY)
	if err == unix.ENOENT && mkdir && at == unix.AT_FDCWD { // after a link, none is made
		if err = t.mkdirs(parent); err == nil {
			fd, err = handle(at, parent, unix.O_DIRECTORY)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := notProc(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), parent), nil
}

// mkdirs makes the directories of a path that miss.
func (t *target) mkdirs(parent string) error {
	for i := 1; i <= len(parent); i++ {
		if i < len(parent) && parent[i] != '/' {
			continue
		}
		switch err := view.mkdir(parent[:i]); err {
		case nil:
			t.made = append(t.made, parent[:i])
		case unix.EEXIST:
		default:
			return err
		}
	}
	return nil
}

// readlink gives where a symbolic link points to; empty for anything else.
func readlink(at int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(at, name, b)
	switch {
	case err == unix.EINVAL || err == unix.ENOENT:
		return "", nil
	case err != nil:
		return "", err
	case n == 0 || n == len(b):
		return "", unix.ENAMETOOLONG
	}
	return string(b[:n]), nil
}

// look finds out what is there already, which must be a regular file.
func (t *target) look() error {
	fd, err := handle(int(t.dir.Fd()), t.name, unix.O_NOFOLLOW)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	t.old = fd
	t.st, err = regular(fd)
	return err
}

// undo takes directories away again that were made for nothing.
func (t *target) undo() {
	for i := len(t.made) - 1; i >= 0; i-- {
		view.rmdir(t.made[i])
	}
	t.made = nil
}

func (t *target) closeDir() {
	if t.dir != nil {
		t.dir.Close()
		t.dir = nil
	}
}

func (t *target) close() {
	t.closeDir()
	if t.old >= 0 {
		unix.Close(t.old)
		t.old = -1
	}
}
