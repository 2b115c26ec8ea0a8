package source

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/dirhash"
)

// Tree is the files of a source, in memory: what was checked is what is read.
type Tree map[string][]byte

// Hash is "h1:…", the hash that Go modules have (golang.org/x/mod/sumdb/dirhash): of names
// and contents.
func (t Tree) Hash() (string, error) {
	return dirhash.Hash1(slices.Sorted(maps.Keys(t)), func(name string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(t[name])), nil
	})
}

// Is fails unless the tree has a hash.
func (t Tree) Is(hash string) error {
	got, err := t.Hash()
	if err == nil && got != hash {
		err = fmt.Errorf("its content is %s, want %s", got, hash)
	}
	return err
}
