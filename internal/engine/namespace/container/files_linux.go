package container

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// files writes the files of the spec.
func (s *stage) files() error {
	for i := range s.c.Files {
		if err := s.file(&s.c.Files[i]); err != nil {
			return fmt.Errorf("the file %s: %w", s.c.Files[i].Path, err)
		}
	}
	return nil
}

// file writes one file. In the root, which becomes read-only later, it replaces an
// existing one; in another mount it is mounted over it.
func (s *stage) file(f *spec.File) error {
	parent, err := s.point(path.Dir(f.Path), true)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	id, err := mountID(parent)
	if err != nil {
		return err
	}
	if base, rel := s.under(f.Path); id == s.root.id && (s.isRoot(base) || rel != ".") {
		return write(parent, path.Base(f.Path), f)
	}
	// The name is removed after mounting: no program ever sees it.
	const name = ".file"
	if err := write(s.root.fd, name, f); err != nil {
		return err
	}
	file, err := unix.Openat(s.root.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	fd, err := clone(file, noSetuid|noDevice|readOnly, false)
	if err != nil {
		return err
	}
	if _, err := s.attach(fd, f.Path, false); err != nil {
		return err
	}
	return unix.Unlinkat(s.root.fd, name, 0)
}

// write replaces whatever has the name by a new file.
func write(dir int, name string, f *spec.File) error {
	if err := unix.Unlinkat(dir, name, 0); err != nil && err != unix.ENOENT {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for data := []byte(f.Data); len(data) > 0; {
		n, err := unix.Write(fd, data)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return unix.Fchmod(fd, f.Mode)
}

// workdir makes a missing working directory, as Docker does.

func (s *stage) workdir() error {
	if s.c.Process.Cwd == "/" || s.hasOwn(s.c.Process.Cwd) {
		return nil
	}
	fd, err := s.point(s.c.Process.Cwd, true)
	if err != nil {
		return fmt.Errorf("the working directory %s: %w", s.c.Process.Cwd, err)
	}
	return unix.Close(fd)
}

// hasOwn reports whether p is in /proc, /sys or /dev.
func (s *stage) hasOwn(p string) bool {
	for _, r := range reserved {
		if subpath.Within(p, r) {
			return true
		}
	}
	return false
}
