// Package rmtree removes directories that others may have filled, and may be
// changing meanwhile.
package rmtree

import (
	"errors"
	"os"
	"path/filepath"
)

// Remove removes a tree, also one of which some directories are closed to their
// owner: copies have the modes of their source, images those of their layers.
// Nothing outside of it is touched, whatever is put in the place of a directory
// meanwhile; only who may write beside dir could name another one. One that
// isn't there is removed already.
func Remove(dir string) error {
	// It goes by descriptors, and opens no link ([os.RemoveAll], removeall_at.go).
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	opened := open(dir)
	err := os.RemoveAll(dir)
	if err != nil {
		err = errors.Join(err, opened)
	}
	return err
}

// open gives the owner of each directory its rights back.
func open(dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return openIn(parent, filepath.Base(dir))
}

// openIn does that below a directory of root, which it doesn't leave. What is gone
// or can't be had is left to who removes it.
func openIn(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	tree, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer tree.Close()
	d, err := tree.Open(".")
	if err != nil {
		return err
	}
	list, err := d.ReadDir(-1)
	d.Close()
	for _, entry := range list {
		if entry.IsDir() {
			_ = openIn(tree, entry.Name())
		}
	}
	return err
}
