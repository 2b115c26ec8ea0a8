//go:build !linux

package facts

import (
	"io/fs"
	"os"
	"path/filepath"
)

// On other systems workers run in a VM that shares these files: paths suffice.

func openDirAt(parent *os.File, name string) (*os.File, error) {
	info, err := lstatAt(parent, name)
	if err == nil && !info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return openFileAt(parent, name)
}

func openFileAt(parent *os.File, name string) (*os.File, error) {
	return os.Open(filepath.Join(parent.Name(), name))
}

func lstatAt(parent *os.File, name string) (fs.FileInfo, error) {
	return os.Lstat(filepath.Join(parent.Name(), name))
}

func readlinkAt(parent *os.File, name string) (string, error) {
	return os.Readlink(filepath.Join(parent.Name(), name))
}
