package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// placeFiles writes files that the engine reads by their path, and verifies them: what is
// there already must be what would be written. It is called immediately before the engine
// reads them.
func placeFiles(files []dialect.File) error {
	for _, f := range files {
		dir := filepath.Dir(f.Path)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if why := otherThan(info, fs.ModeDir|0o700); why != "" {
			return swapped(dir, why)
		}
		if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
			if err := (atomicfile.File{Name: f.Path, Data: []byte(f.Text), Mode: f.Mode, Volatile: true}).Write(); err != nil {
				return err
			}
		}
		if info, err = os.Lstat(f.Path); err != nil {
			return err
		}
		if why := otherThan(info, f.Mode); why != "" {
			return swapped(f.Path, why)
		}
		text, err := boundedfile.Read(f.Path, int64(len(f.Text)))
		if err != nil || string(text) != f.Text {
			return swapped(f.Path, "has another content")
		}
	}
	return nil
}

// otherThan says how a file differs from one of the caller's with that mode.
func otherThan(info fs.FileInfo, mode fs.FileMode) string {
	if uid, _, known := fileowner.Of(info); known && uid != os.Getuid() {
		return fmt.Sprintf("belongs to uid %d", uid)
	}
	if info.Mode() != mode {
		return fmt.Sprintf("has mode %v, want %v", info.Mode(), mode)
	}
	return ""
}

func swapped(path, why string) error {
	return &engine.RefusedError{
		Promise: "B2", Reason: fmt.Sprintf("%s, which the engine reads, %s: workshop made it otherwise", path, why),
		Do: "find out what changed it, remove it, and run `workshop up` again",
	}
}
