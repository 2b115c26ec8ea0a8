// Package atomicfile replaces files in one step: a reader, and who looks after
// a crash or a power cut, finds the old file or the new one, whole. Which one
// after a power cut, nobody can tell: the directory isn't waited for.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it.
func Write(name string, data []byte, mode fs.FileMode) error {
	return File{Name: name, Data: data, Mode: mode}.Write()
}

// File is one that is to be in the place of another.
type File struct {
	Name string
	Data []byte
	Mode fs.FileMode // whatever the umask is
	// Temp is the directory in which it is written, on the same file system;
	// empty: its own.
	Temp string
	// Prepare changes what else the file has, its owner perhaps; it may be nil.
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
	if err == nil { // else a power cut may leave the new name without its content (ext4(5), auto_da_alloc)
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), n.Name)
}
