// Package copytree writes the content of a project's volumes, its policy and
// read-only copies, as tar streams. It also writes build contexts.
package copytree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/go-units"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/pathglob"
)

// Limits of a copy or a build context that is sent to an engine.
const (
	MaxBytes = 4 << 30
	MaxFiles = 500_000
)

// Options selects what is copied, and sets the owner of the copies. The zero value
// copies everything, for root.
type Options struct {
	// Exclude are globs relative to the source; a matching directory is left out
	// with everything below it.
	Exclude []string
	// UID and GID own the copies.
	UID, GID int
	// Readable makes the copies readable by everybody with access to the volume.
	Readable bool
	// NoLinks refuses a directory with a symbolic link in its path, on systems
	// that report what was opened (Linux).
	NoLinks bool
	// MaxBytes and MaxFiles bound the copy; 0: the package's.
	MaxBytes int64
	MaxFiles int
}

// Write writes the files below dir to w, in order of their names. Symbolic links
// are copied, never followed: they resolve where the copy is. Sockets, FIFOs and
// devices are errors.
func Write(w *tar.Writer, dir string, o Options) error {
	if o.MaxBytes == 0 {
		o.MaxBytes = MaxBytes
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = MaxFiles
	}
	for _, pattern := range o.Exclude {
		if err := pathglob.Check(pattern); err != nil {
			return fmt.Errorf("exclude %.40q %w", pattern, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrInvalid) || err != nil && isFile(dir) {
		return fmt.Errorf("copy %s: not a directory", dir)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if o.NoLinks {
		if err := isAt(root, dir); err != nil {
			return err
		}
	}
	var bytes int64
	files := 0
	return fs.WalkDir(Files(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copy %s: %w", dir, err)
		}
		if name == "." {
			return nil
		}
		if compose.Excluded(o.Exclude, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > o.MaxFiles {
			return fmt.Errorf("copy %s: more than %d files; leave some out with exclude", dir, o.MaxFiles)
		}
		n, err := Entry(w, root, name, d, o)
		if err != nil {
			return fmt.Errorf("copy %s: %w", filepath.Join(dir, name), err)
		}
		if bytes += n; bytes > o.MaxBytes {
			return fmt.Errorf("copy %s: more than %s; leave something out with exclude", dir, units.BytesSize(float64(o.MaxBytes)))
		}
		return nil
	})
}

// source reads a directory that a worker may write to. If a file is replaced by a
// FIFO before it is opened, the FS of [os.Root] would block.
type source struct{ *os.Root }

// Files returns the files below a root, as [Write] reads them.
func Files(root *os.Root) fs.FS { return source{root} }

// Open opens a file or directory without blocking.
func (s source) Open(name string) (fs.File, error) { return boundedfile.OpenIn(s.Root, name) }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Entry writes one entry of a walk through root, and returns the size of its
// content.
func Entry(w *tar.Writer, root *os.Root, name string, d fs.DirEntry, o Options) (int64, error) {
	h := &tar.Header{Name: filepath.ToSlash(name), Uid: o.UID, Gid: o.GID}
	switch d.Type() {
	case fs.ModeDir:
		info, err := d.Info()
		if err != nil {
			return 0, err
		}
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", int64(info.Mode().Perm())
		if o.Readable {
			h.Mode |= 0o555
		}
		return 0, w.WriteHeader(h)
	case fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return 0, err
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, target, 0o777
		return 0, w.WriteHeader(h)
	case 0:
		return writeFile(w, root, name, h, o)
	}
	return 0, fmt.Errorf("a %s can't be copied; leave it out with exclude", kindOf(d.Type()))
}

// writeFile writes as many bytes as the file had when it was opened.
func writeFile(w *tar.Writer, root *os.Root, name string, h *tar.Header, o Options) (int64, error) {
	f, err := boundedfile.OpenIn(root, name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	// A symbolic link could lead to excluded files.
	if now, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || !os.SameFile(info, now) {
		return 0, errors.New("it changed while it was copied")
	}
	h.Typeflag, h.Mode, h.Size = tar.TypeReg, int64(info.Mode().Perm()), info.Size()
	if o.Readable {
		h.Mode |= 0o444
	}
	if err := w.WriteHeader(h); err != nil {
		return 0, err
	}
	n, err := io.CopyN(w, f, h.Size)
	if errors.Is(err, io.EOF) {
		return n, errors.New("it was truncated while it was copied")
	}
	return n, err
}

func kindOf(t fs.FileMode) string {
	switch {
	case t&fs.ModeSocket != 0:
		return "socket"
	case t&fs.ModeNamedPipe != 0:
		return "FIFO"
	}
	return "device"
}
