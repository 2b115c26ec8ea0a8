//go:build !linux

package rmtree

import (
	"errors"
	"os"
	"path/filepath"
)

// Remove removes a tree, also if some of its directories aren't accessible to their
// owner: copies have the modes of their source, images those of their layers. It touches
// nothing outside, even if directories are replaced concurrently; only somebody who may
// write to dir's parent could redirect it. A missing tree is not an error.
func Remove(dir string) error {
	// By descriptors, without following links ([os.RemoveAll], removeall_at.go).
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

// open makes each directory accessible to its owner.
func open(dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return openIn(parent, filepath.Base(dir))
}

// openIn does that below a directory of root, inside root. It ignores errors, which the
// removal reports.
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
