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

// missingDirs says what happens to the missing directories of a path.
type missingDirs int

const (
	noDirs    missingDirs = iota // they are an error
	makeDirs                     // they are made
	checkDirs                    // whether they can be made is checked
)

// resolve finds where to write. A symbolic link leads to what it points to, be
// it there or not. With checkDirs, a target in a missing directory has neither a
// dir nor an old file.
func resolve(given string, missing missingDirs) (_ *target, err error) {
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
		d, err := t.open(at, parent, missing)
		if err != nil {
			return t, err
		}
		if d == nil {
			t.closeDir()
			return t, nil
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

// open returns a handle of a directory that is not on a procfs; nil for one that
// could be made, with checkDirs.
func (t *target) open(at int, parent string, missing missingDirs) (*os.File, error) {
	if parent == "" {
		parent = "."
	}
	fd, err := handle(at, parent, unix.O_DIRECTORY)
	if err == unix.ENOENT && missing != noDirs && at == unix.AT_FDCWD { // the target of a link is never made
		if missing == checkDirs {
			return nil, mayMake(parent)
		}
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

// mayMake returns why mkdirs would fail at its first directory.
func mayMake(parent string) error {
	have := "."
	if path.IsAbs(parent) {
		have = "/"
	}
	for i := 1; i <= len(parent); i++ {
		if i < len(parent) && parent[i] != '/' {
			continue
		}
		fd, err := handle(unix.AT_FDCWD, parent[:i], unix.O_DIRECTORY)
		if err == unix.ENOENT {
			return mayMakeIn(have, parent[:i])
		}
		if err != nil {
			return err
		}
		unix.Close(fd)
		have = parent[:i]
	}
	return nil
}

// mayMakeIn returns why the directory p, which is missing, can't be made in dir.
func mayMakeIn(dir, p string) error {
	fd, err := handle(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := view.writable(fd, path.Base(p), p); err != nil {
		return err
	}
	return mayAdd(fd)
}

// readlink returns where a symbolic link points to; empty for anything else.
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
