package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// unpacked returns a found image, which it unpacks unless the store has it. Concurrent
// calls for the same one wait for each other.
func (s *Store) unpacked(ctx context.Context, ref reference.Ref, f *found, progress Progress) (*Image, error) {
	if img, err := s.stored(ref, f.id); img != nil || err != nil {
		return img, err
	}
	l, err := s.lock(ctx, f.id)
	if err != nil {
		return nil, err
	}
	defer l.Unlock()
	if img, err := s.stored(ref, f.id); img != nil || err != nil {
		return img, err
	}
	s.sweep()
	work := filepath.Join(s.dir, "work", strings.TrimPrefix(f.id, "sha256:"))
	if err := rmtree.Remove(work); err != nil { // left by a killed process
		return nil, err
	}
	defer rmtree.Remove(work)
	rootfs := filepath.Join(work, "rootfs")
	if err := os.MkdirAll(rootfs, 0o700); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	size, err := s.extract(ctx, f, work, newMeter(progress, f))
	if err != nil {
		return nil, err
	}
	// Sync the files before the marker, and the marker before the name.
	if err := syncAll(rootfs); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	if err := writeFile(filepath.Join(work, "image.json"), marker{Format: format, ID: f.id, Size: size, Config: f.config}); err != nil {
		return nil, err
	}
	dir := s.imageDir(f.id)
	if err := rmtree.Remove(dir); err != nil { // of another format
		return nil, err
	}
	if err := os.Rename(work, dir); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	if err := syncAll(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return s.stored(ref, f.id)
}

// extract unpacks the layers into work/rootfs and verifies each.
func (s *Store) extract(ctx context.Context, f *found, work string, m *meter) (int64, error) {
	root, err := unix.Open(filepath.Join(work, "rootfs"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("image store: %w", err)
	}
	defer unix.Close(root)
	x := newExtractor(ctx, root, s.o.Limits, os.Geteuid() == 0)
	defer x.forget()
	left := s.o.Limits.archives()

	layers := fetchAhead(ctx, f.layers, work, m)
	defer layers.close()
	for i := range f.layers {
		r, err := layers.layer(i)
		if err != nil {
			return 0, err
		}
		left, err = unpackLayer(ctx, x, &f.layers[i], m.reading(r, i), i, left)
		r.Close()
		if err != nil {
			return 0, err
		}
	}
	return x.bytes, x.finish()
}

// unpackLayer unpacks one layer, and returns how many bytes the others may have.
func unpackLayer(ctx context.Context, x *extractor, l *layer, r io.Reader, i int, left int64) (int64, error) {
	what := fmt.Sprintf("layer %d", i+1)
	r = &canceled{ctx, r}
	if l.blob.Digest != "" {
		r = verify(r, what, l.blob.Digest, l.blob.Size)
	}
	z, err := decompress(r)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	defer z.Close()
	limit := &bounded{z, left}
	plain := verify(limit, what+" unpacked", l.diffID, -1)
	if err := x.layer(plain); err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	// The digests include trailing data of the archive.
	if _, err = io.Copy(io.Discard, plain); err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return limit.left, nil
}

// canceled is a reader that ends with its context.
type canceled struct {
	ctx context.Context
	r   io.Reader
}

func (c *canceled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// syncAll syncs the file system of a directory.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// meter adds up the bytes read of all layers.
type meter struct {
	mu             sync.Mutex
	current, total int64
	layers         int
	tell           Progress
}

func newMeter(tell Progress, f *found) *meter {
	m := &meter{tell: tell, layers: len(f.layers)}
	for _, l := range f.layers {
		m.total += l.blob.Size
	}
	return m
}

func (m *meter) add(n int64, detail string) {
	if m.tell == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current += n
	m.tell(m.current, m.total, detail)
}

// reading counts the bytes read of a local layer; for a pulled one it only reports that
// it is being unpacked.
func (m *meter) reading(r io.Reader, i int) io.Reader {
	detail := fmt.Sprintf("unpacking layer %d of %d", i+1, m.layers)
	m.add(0, detail)
	if _, pulled := r.(*pulledFile); pulled {
		return r
	}
	return &counted{r, func(n int64) { m.add(n, detail) }}
}

// counted reports progress every mebibyte.
type counted struct {
	r   io.Reader
	add func(int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.add(int64(n))
	return n, err
}
