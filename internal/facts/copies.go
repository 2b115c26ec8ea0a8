package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
)

// copies computes the current digests of read-only copies, so that `up` recreates
// workers with outdated files.
func (c *collector) copies(ctx context.Context) {
	c.facts.CopyDigests = map[string]string{}
	if c.o.SkipContents {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.o.Compiled.Copies)) {
		cp := c.o.Compiled.Copies[key]
		sf := c.facts.Sources[cp.Source]
		if !sf.Exists {
			continue // reported by WithFacts
		}
		digest, err := copyDigest(ctx, sf.Real, cp.Exclude)
		if err != nil {
			c.problem("mount-source-unreadable", c.sourceAt(cp.Source), fmt.Sprintf("can't read %s, the source of a copy (B9): %s", cp.Source, ClipPath(err.Error())),
				"exclude what can't be read or needn't be copied")
			continue
		}
		c.facts.CopyDigests[key] = digest
	}
}

// sourceAt returns the position of the first mount of a source.
func (c *collector) sourceAt(source string) diag.Range {
	for _, u := range c.uses() {
		if u.source == source {
			return u.at
		}
	}
	return diag.Range{Filename: c.o.Workshop.File}
}

// copyDigest returns a digest of the names, types, permissions, sizes and times of
// change of a copy's files, without reading them. Excluded files and the times of
// directories don't count.
func copyDigest(ctx context.Context, root string, exclude []string) (string, error) {
	h := sha256.New()
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if path == root {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if compose.Excluded(exclude, rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if seen++; seen > maxEntries {
			return errBound{fmt.Sprintf("more than %d files", maxEntries)}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			fmt.Fprintf(h, " %d %d", info.Size(), info.ModTime().UnixNano())
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, " %q", to)
		}
		h.Write([]byte{'\n'})
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
