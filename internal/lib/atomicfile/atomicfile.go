// Package atomicfile replaces files atomically: a concurrent reader, or one after a crash
// or a power failure, finds the complete old or new file. After a power failure it may be
// either, as the directory isn't synced.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces or creates a file.
func Write(name string, data []byte, mode fs.FileMode) error {
	return File{Name: name, Data: data, Mode: mode}.Write()
}

// File is the new content of a file.
type File struct {
	Name string
	Data []byte
	Mode fs.FileMode // regardless of the umask
	// Volatile: a power failure may lose it, so it isn't synced.
	Volatile bool
	// Temp is the directory for the temporary file, on the same file system; empty:
	// that of the file.
	Temp string
	// Prepare, if not nil, changes other attributes of the file, such as its owner.
	Prepare func(*os.File) error
}

// Write is [Write].
func (n File) Write() error {
	dir := filepath.Dir(n.Name)
	temp := n.Temp
	if temp == "" {
		temp = dir
	}
	f, err := os.CreateTemp(temp, ".new-*") // O_EXCL, 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing once it is renamed
	_, err = f.Write(n.Data)
	if err == nil {
		err = f.Chmod(n.Mode)
	}
	if err == nil && n.Prepare != nil {
		err = n.Prepare(f)
	}
	if err == nil && !n.Volatile { // else a power cut may leave the new name without its content (ext4(5), auto_da_alloc)
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), n.Name)
}
