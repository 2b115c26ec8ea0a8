package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// sweep removes leftovers of interrupted runs, whose lock nobody holds.
func (s *Store) sweep() {
	list, err := os.ReadDir(filepath.Join(s.dir, "work"))
	if err != nil {
		return // the next Get reports it
	}
	for _, d := range list {
		l := flock.New(filepath.Join(s.dir, "locks", d.Name()), flock.SetPermissions(0o600))
		if ok, err := l.TryLock(); err != nil || !ok {
			continue
		}
		_ = rmtree.Remove(filepath.Join(s.dir, "work", d.Name())) // the next one tries again
		l.Unlock()
	}
}

// List returns the images of the store, by ID. Ref is a name of each, if it was pulled
// by name.
func (s *Store) List() ([]Image, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(filepath.Join(s.dir, "images"))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var out []Image
	for _, d := range list {
		id := "sha256:" + d.Name()
		if checkDigest(id) != nil {
			continue
		}
		img, err := s.stored(reference.Ref{}, id)
		if err != nil {
			return nil, err
		}
		if img == nil {
			continue
		}
		for _, n := range names {
			if ref, err := reference.Parse(n.Ref); err == nil && n.ID == id {
				img.Ref = ref
				break
			}
		}
		out = append(out, *img)
	}
	return out, nil
}

// names reads all names; map keys are files.
func (s *Store) names() (map[string]nameRecord, error) {
	dir := filepath.Join(s.dir, "refs")
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	out := map[string]nameRecord{}
	for _, d := range list {
		var n nameRecord
		file := filepath.Join(dir, d.Name())
		if filepath.Ext(file) != ".json" {
			continue // being written
		}
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &n) == nil {
			out[file] = n
		}
	}
	return out, nil
}

// Remove removes an image by its ID, with every name it has. A missing image is not an
// error. The caller makes sure that no worker is using it, as its files are removed.
func (s *Store) Remove(ctx context.Context, id string) error {
	if err := checkDigest(id); err != nil {
		return err
	}
	l, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer l.Unlock()
	names, err := s.names()
	if err != nil {
		return err
	}
	for file, n := range names {
		if n.ID == id {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("image store: %w", err)
			}
		}
	}
	// Renamed first, so that an incomplete image is never found.
	work := filepath.Join(s.dir, "work", strings.TrimPrefix(id, "sha256:"))
	if err := rmtree.Remove(work); err != nil {
		return err
	}
	if err := os.Rename(s.imageDir(id), work); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("image store: %w", err)
	}
	return rmtree.Remove(work)
}
