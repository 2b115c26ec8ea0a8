// Package boundedfile reads untrusted files, of a project or a directory that a worker
// writes to. It never blocks on a named pipe, reads only regular files, and reads no more
// than a limit (B60).
package boundedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// flags keep open from blocking on a named pipe (O_NONBLOCK), and a terminal from
// becoming the controlling one (O_NOCTTY).
const flags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// Open opens a file of any type without blocking.
func Open(name string) (*os.File, error) { return os.OpenFile(name, flags, 0) }

// OpenIn is [Open] inside a root.
func OpenIn(root *os.Root, name string) (*os.File, error) { return root.OpenFile(name, flags, 0) }

// Read reads a regular file of at most limit bytes. Errors are [fs.PathError] and may
// wrap a [KindError] or a [SizeError].
func Read(name string, limit int64) ([]byte, error) {
	return read(name, limit, os.Stat, open)
}

// Copy is [Read] into a writer, which may have got a part of the file when it fails.
func Copy(to io.Writer, name string, limit int64) error {
	return use(name, limit, os.Stat, open, func(f fs.File) error { return copyOpen(to, f, limit) })
}

func open(name string) (fs.File, error) { return Open(name) }

// ReadIn is [Read] below a root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	return read(name, limit, root.Stat, func(name string) (fs.File, error) { return OpenIn(root, name) })
}

// ReadFS is [Read] in a file system, whose Open must not block. If it has [fs.StatFS],
// only regular files are opened.
func ReadFS(fsys fs.FS, name string, limit int64) ([]byte, error) {
	return read(name, limit, func(name string) (fs.FileInfo, error) { return fs.Stat(fsys, name) }, fsys.Open)
}

func read(name string, limit int64, stat func(string) (fs.FileInfo, error), open func(string) (fs.File, error)) (data []byte, err error) {
	err = use(name, limit, stat, open, func(f fs.File) (err error) {
		data, err = ReadOpen(f, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// use checks the file before opening it, because opening a device may have effects; f checks it
// afterwards, because it may have been replaced.
func use(name string, limit int64, stat func(string) (fs.FileInfo, error), open func(string) (fs.File, error), f func(fs.File) error) error {
	if info, err := stat(name); err != nil {
		return err
	} else if err := check(info, limit); err != nil {
		return &fs.PathError{Op: "read", Path: name, Err: err}
	}
	opened, err := open(name)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := f(opened); err != nil {
		return &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return nil
}

// ReadOpen is [Read] of an open file.
func ReadOpen(f fs.File, limit int64) ([]byte, error) {
	data := bytes.NewBuffer([]byte{})
	err := copyOpen(data, f, limit)
	return data.Bytes(), err
}

func copyOpen(to io.Writer, f fs.File, limit int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := check(info, limit); err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(f, limit+1))
	if err == nil && n > limit { // it has grown, or is in procfs
		err = SizeError(limit)
	}
	return err
}

func check(info fs.FileInfo, limit int64) error {
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return KindError(mode.Type())
	case info.Size() > limit:
		return SizeError(limit)
	}
	return nil
}

// Reason returns the text of an error without the path of an [fs.PathError].
func Reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// KindError means that a file is not a regular file; the value is its type bits.
type KindError fs.FileMode

func (e KindError) Error() string { return "is a " + kind(fs.FileMode(e)) + ", want a regular file" }

func kind(t fs.FileMode) string {
	switch {
	case t&fs.ModeDir != 0:
		return "directory"
	case t&fs.ModeNamedPipe != 0:
		return "named pipe"
	case t&fs.ModeSocket != 0:
		return "socket"
	case t&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "device"
}

// SizeError means that a file exceeds a limit, in bytes.
type SizeError int64

func (e SizeError) Error() string {
	switch {
	case e >= 1<<20 && e%(1<<20) == 0:
		return fmt.Sprintf("larger than %d MiB", e>>20)
	case e >= 1<<10 && e%(1<<10) == 0:
		return fmt.Sprintf("larger than %d KiB", e>>10)
	}
	return fmt.Sprintf("larger than %d bytes", int64(e))
}
