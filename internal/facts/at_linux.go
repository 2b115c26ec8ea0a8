package facts

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Files below a directory that a worker writes to are opened by the descriptor of
// their parent: a path could lead elsewhere a moment later, and may exceed PATH_MAX.

// openDirAt opens a directory of parent without following a symlink, and without
// blocking on a FIFO.
func openDirAt(parent *os.File, name string) (*os.File, error) {
	return openAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openFileAt opens a file of parent for reading in the same way.
func openFileAt(parent *os.File, name string) (*os.File, error) {
	return openAt(parent, name, unix.O_RDONLY|unix.O_NOCTTY)
}

// lstatAt describes what parent has under name.
func lstatAt(parent *os.File, name string) (fs.FileInfo, error) {
	f, err := openAt(parent, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// readlinkAt returns the target of a symlink of parent.
func readlinkAt(parent *os.File, name string) (string, error) {
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(parent.Fd()), name, to)
	if err != nil {
		return "", pathError("readlinkat", parent, name, err)
	}
	return string(to[:n]), nil
}

func openAt(parent *os.File, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(parent.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), filepath.Join(parent.Name(), name)), nil
		case unix.EINTR:
			continue
		}
		return nil, pathError("openat", parent, name, err)
	}
}

func pathError(op string, parent *os.File, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(parent.Name(), name), Err: err}
}
