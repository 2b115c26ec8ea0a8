package source

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// Limits of a tree that is read, in files and bytes: those of what is fetched.
const (
	maxFiles = 256
	maxFile  = 1 << 20
	maxTree  = 8 << 20
	maxDirs  = 4096
)

// Cache keeps trees by their hashes in a directory of the user; without one, none.
type Cache struct{ Dir string }

// file is the name of a tree in the cache.
func (c Cache) file(hash string) string {
	return filepath.Join(c.Dir, hex.EncodeToString([]byte(hash))+".json")
}

// Put keeps a tree.
func (c Cache) Put(t Tree) error {
	if c.Dir == "" {
		return nil
	}
	hash, err := t.Hash()
	if err != nil {
		return err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.file(hash), data, 0o600)
}

// Get returns a tree by its hash. [fs.ErrNotExist]: it isn't there; whatever else is
// there in its place is an error.
func (c Cache) Get(hash string) (Tree, error) {
	if c.Dir == "" {
		return nil, fs.ErrNotExist
	}
	data, err := boundedfile.Read(c.file(hash), 2*maxTree)
	if err != nil {
		return nil, err
	}
	var t Tree
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("%s was changed by another program: %w", c.file(hash), err)
	}
	if err := t.Is(hash); err != nil {
		return nil, fmt.Errorf("%s was changed by another program: %w", c.file(hash), err)
	}
	return t, nil
}

// VendorDir is where a project has its sources, below its own directory.
const VendorDir = ".workshop/_vendor"

// VendorName is the name of a source's directory in [VendorDir].
func (id ID) VendorName() string {
	name, kind := id.String(), ""
	if id.scheme == ociScheme { // no host has a plus sign
		name, kind = strings.TrimSuffix(name, ociMark), ociScheme+"+"
	}
	return kind + strings.NewReplacer("/", ",", ":", "_").Replace(name)
}

// Vendored reads a source from the vendor directory of a project, whatever its file system
// is. [fs.ErrNotExist]: it isn't there. No symbolic link is followed. Its hash is not
// checked.
func Vendored(project fs.FS, id ID) (Tree, error) {
	root := path.Join(VendorDir, id.VendorName())
	for _, name := range []string{path.Dir(VendorDir), VendorDir, root} {
		info, err := fs.Lstat(project, name)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", name)
		}
		if err != nil {
			return nil, fmt.Errorf("vendored %s: %w", id, err)
		}
	}
	v := vendored{project: project, root: root, tree: Tree{}, left: maxTree}
	if err := v.read("."); err != nil {
		return nil, fmt.Errorf("vendored %s: %w", id, err)
	}
	return v.tree, nil
}

// vendored is a directory that is read.
type vendored struct {
	project fs.FS
	root    string
	tree    Tree
	left    int64 // bytes
	dirs    int
}

// read reads a directory of it.
func (v *vendored) read(name string) error {
	if v.dirs++; v.dirs > maxDirs {
		return fmt.Errorf("more than %d directories", maxDirs)
	}
	entries, err := v.list(path.Join(v.root, name))
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(name, e.Name())
		switch {
		case e.IsDir():
			if err := v.read(at); err != nil {
				return err
			}
			continue
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", at)
		case len(v.tree) == maxFiles:
			return fmt.Errorf("more than %d files", maxFiles)
		}
		text, err := boundedfile.ReadFS(v.project, path.Join(v.root, at), min(maxFile, v.left))
		if err != nil {
			return err
		}
		v.tree[at], v.left = text, v.left-int64(len(text))
	}
	return nil
}

// list returns what a directory has, of a number that can be of a tree.
func (v *vendored) list(name string) ([]fs.DirEntry, error) {
	f, err := v.project.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("is not a directory")}
	}
	entries, err := dir.ReadDir(maxFiles + maxDirs + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxFiles+maxDirs {
		return nil, fmt.Errorf("%s has more than %d files", name, maxFiles+maxDirs)
	}
	return entries, nil
}

// OpenVendor opens the vendor directory of a project, which is not, or below, a symbolic
// link; [fs.ErrNotExist]: there is none.
func OpenVendor(project *os.Root) (*os.Root, error) {
	return hostlink.OpenDir(project, VendorDir, false)
}

// Vendor writes a source into the vendor directory of a project, in the place of what is
// there, which stays if that fails.
func Vendor(project *os.Root, id ID, t Tree) error {
	dir, err := hostlink.OpenDir(project, VendorDir, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := id.VendorName()
	made := name + "#new" // no source has that in its name
	if err := dir.RemoveAll(made); err != nil {
		return err
	}
	if err := write(dir, made, t); err != nil {
		return errors.Join(err, dir.RemoveAll(made))
	}
	if err := dir.RemoveAll(name); err != nil {
		return errors.Join(err, dir.RemoveAll(made))
	}
	return dir.Rename(made, name)
}

// write writes a tree below a directory that isn't there.
func write(root *os.Root, dir string, t Tree) error {
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range t {
		at := path.Join(dir, name)
		if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(at, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
