package namespace

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// fill writes the policy or a read-only copy into a volume of the project.
func (e *Engine) fill(c *compose.Compiled, key string) error {
	name := engine.VolumeName(c.Project, key)
	dir, err := e.volumeDir(c.Project.Name, name)
	if err == nil {
		if key == compose.PolicyVolume {
			err = fillPolicy(c, dir)
		} else {
			err = fillCopy(c, key, dir)
		}
	}
	if err != nil {
		return fmt.Errorf("fill volume %s: %w", name, err)
	}
	return nil
}

// fillPolicy replaces the policy atomically: a starting guard reads the old one or
// the new one.
func fillPolicy(c *compose.Compiled, dir string) error {
	if c.Policy == nil {
		return errors.New("the project has no policy")
	}
	return atomicfile.Write(filepath.Join(dir, copytree.PolicyFile), firewall.EncodePolicy(c.Policy), 0o444)
}

// fillCopy writes what the docker engine would send into a new directory.
func fillCopy(c *compose.Compiled, key, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := copytree.Volume(t, c, key)
		w.CloseWithError(errors.Join(err, t.Close()))
	}()
	defer r.Close()
	// Modes of directories are set last: one may not be writable.
	var dirs []*tar.Header
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		h.Name = path.Clean(h.Name)
		if err := writeEntry(root, h, t); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			dirs = append(dirs, h)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := finishEntry(root, dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry writes one entry. It never follows a symbolic link ([os.Root]; and a
// stream of copytree has each name once).
func writeEntry(root *os.Root, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(h.Name, 0o700)
	case tar.TypeSymlink:
		if err := root.Symlink(h.Linkname, h.Name); err != nil {
			return err
		}
		return lchown(root, h)
	case tar.TypeReg:
		f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return finishEntry(root, h)
	}
	return fmt.Errorf("%s is not a file, directory or symbolic link", h.Name)
}

// finishEntry sets the owner, mode and time of a file or directory.
func finishEntry(root *os.Root, h *tar.Header) error {
	if err := lchown(root, h); err != nil {
		return err
	}
	if err := root.Chmod(h.Name, os.FileMode(h.Mode).Perm()); err != nil {
		return err
	}
	return root.Chtimes(h.Name, time.Time{}, time.Unix(0, 0)) // as in Docker's copies
}

// lchown changes the owner of an entry to the worker. Without root the caller is the
// worker.
func lchown(root *os.Root, h *tar.Header) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return root.Lchown(h.Name, h.Uid, h.Gid)
}
