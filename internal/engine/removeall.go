package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes a tree of which some directories may be closed to their
// owner: those of a copy have the modes of their source, and programs of a worker
// close their own.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
