package root

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/erofs/go-erofs"
)

// Write writes an EROFS image of a directory into an empty file.
func Write(ctx context.Context, out *os.File, dir string) error {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("a root file system: %w", err)
	}
	defer r.Close()
	to := &sparse{f: out}
	// Without a time, it would be that of the clock.
	w := erofs.Create(to, erofs.WithBuildTime(0, 0))
	if err := w.CopyFrom(newSource(ctx, r)); err != nil {
		return fmt.Errorf("read the root file system %s: %w", dir, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write the image of %s: %w", dir, err)
	}
	return to.end()
}

// sparse leaves out what is zero of a file: an image may have large holes.
type sparse struct {
	f         *os.File
	pos, size int64
}

// Write implements [io.Writer].
func (s *sparse) Write(p []byte) (n int, err error) {
	n = len(p)
	// What is below the size has been written before.
	if s.pos < s.size || !zero(p) {
		n, err = s.f.WriteAt(p, s.pos)
	}
	s.pos += int64(n)
	s.size = max(s.size, s.pos)
	return n, err
}

// zero reports whether there are only zeros, quickly if the first is none.
func zero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// Seek implements [io.Seeker].
func (s *sparse) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += s.pos
	case io.SeekEnd:
		off += s.size
	}
	if off < 0 {
		return 0, os.ErrInvalid
	}
	s.pos = off
	return off, nil
}

// end gives the file its size.
func (s *sparse) end() error { return s.f.Truncate(s.size) }
