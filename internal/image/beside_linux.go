package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Beside returns the path of a file that is made of an image, once: the first caller
// writes it, others wait for it. It is complete if it is there, readable for those who
// reach the store, and removed with the image. The name must not be one that the store
// uses. An image that was removed in the meantime is [fs.ErrNotExist].
func (s *Store) Beside(ctx context.Context, img *Image, name string, write func(f *os.File) error) (string, error) {
	file := filepath.Join(s.imageDir(img.ID), name)
	if _, err := os.Lstat(file); err == nil {
		return file, nil
	}
	l, err := s.lock(ctx, img.ID)
	if err != nil {
		return "", err
	}
	defer l.Unlock()
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if got, err := s.stored(img.Ref, img.ID); err != nil || got == nil {
		return "", fmt.Errorf("image %s was removed: %w", img.ID, errors.Join(err, fs.ErrNotExist))
	}
	// One that a killed process left is overwritten.
	unfinished := file + ".unfinished"
	f, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	defer os.Remove(unfinished)
	defer f.Close()
	if err := write(f); err != nil {
		return "", err
	}
	if err = f.Chmod(0o444); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(unfinished, file)
	}
	if err == nil {
		err = syncAll(filepath.Dir(file))
	}
	if err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	return file, nil
}
