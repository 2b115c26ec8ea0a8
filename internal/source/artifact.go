package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/image"
)

// A workshop in a registry is one layer of its files: a JSON object of their names, in
// order, and contents (base64), as [Cache] has it. There is no archive that could name
// other places. A signature is an artifact that refers to it.
var (
	workshopArtifact  = image.Artifact{Type: "application/vnd.llmdo.workshop.v1", LayerType: "application/vnd.llmdo.workshop.files.v1+json"}
	signatureArtifact = image.Artifact{Type: "application/vnd.llmdo.workshop.signature.v1", LayerType: "application/vnd.llmdo.workshop.sshsig.v1"}
)

const (
	maxLayer     = 12 << 20 // bytes: of maxTree as base64, with the names
	maxSignature = 64 << 10
)

// within fails for a tree that is larger than one that is fetched may be, or has names that
// can't be shared.
func (t Tree) within() error {
	left := maxTree
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if len(t[name]) > maxFile {
			return fmt.Errorf("%q has %d bytes, more than %d", name, len(t[name]), maxFile)
		}
		left -= len(t[name])
	}
	switch {
	case len(t) == 0:
		return errors.New("it has no files")
	case len(t) > maxFiles:
		return fmt.Errorf("it has %d files, more than %d", len(t), maxFiles)
	case left < 0:
		return fmt.Errorf("the files have more than %d bytes", maxTree)
	}
	return git.CheckNames(slices.Sorted(maps.Keys(t)))
}

// Pack makes an artifact of a tree, for a tag. The same tree and tag give the same bytes.
func Pack(t Tree, tag string) (image.Artifact, error) {
	a := workshopArtifact
	if !image.IsTag(tag) {
		return a, fmt.Errorf("%q is not a tag", tag)
	}
	if err := t.within(); err != nil {
		return a, err
	}
	whole := Tree{}
	for name, text := range t {
		whole[name] = append([]byte{}, text...) // an empty one, too, isn't null
	}
	var err error
	a.Layer, err = json.Marshal(whole)
	a.Version = tag
	return a, err
}

// unpack reads the layer of an artifact, which is only what [Pack] writes.
func unpack(layer []byte) (Tree, error) {
	var t Tree
	if err := json.Unmarshal(layer, &t); err != nil {
		return nil, fmt.Errorf("its content is damaged: %w", err)
	}
	if err := t.within(); err != nil {
		return nil, err
	}
	if again, err := Pack(t, "x"); err != nil || !bytes.Equal(again.Layer, layer) {
		return nil, errors.New("its content is damaged: it is not in order, or names a file twice")
	}
	return t, nil
}
