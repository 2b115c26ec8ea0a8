package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	ahead    = 3 // layers that are pulled at a time
	attempts = 3 // of one layer
)

// pulledFile is a pulled and verified layer, in a file without a name.
type pulledFile struct{ *os.File }

// fetcher returns layers in order. Those of a registry are pulled while earlier ones
// are unpacked, and verified before they are unpacked; local ones are just opened.
type fetcher struct {
	layers  []layer
	results []chan pulled
	group   errgroup.Group
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

type pulled struct {
	f   *os.File
	err error
}

func fetchAhead(ctx context.Context, layers []layer, dir string, m *meter) *fetcher {
	a := &fetcher{layers: layers, results: make([]chan pulled, len(layers))}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.group.SetLimit(ahead + 1)
	for i := range layers {
		a.results[i] = make(chan pulled, 1)
	}
	a.group.Go(func() error {
		for i := range layers {
			if !layers[i].remote {
				continue
			}
			a.group.Go(func() error {
				f, err := pull(a.ctx, &layers[i], dir, m, fmt.Sprintf("pulling layer %d of %d", i+1, len(layers)))
				if err != nil {
					a.cancel(err) // ends the others, with the same error
				}
				a.results[i] <- pulled{f, err}
				return nil
			})
		}
		return nil
	})
	return a
}

// layer returns layer i, the next one.
func (a *fetcher) layer(i int) (io.ReadCloser, error) {
	if !a.layers[i].remote {
		return a.layers[i].open(a.ctx)
	}
	r := <-a.results[i]
	if r.err != nil {
		return nil, context.Cause(a.ctx)
	}
	return &pulledFile{r.f}, nil
}

// close ends running pulls.
func (a *fetcher) close() {
	a.cancel(context.Canceled)
	a.group.Wait()
	for _, c := range a.results {
		select {
		case r := <-c:
			if r.f != nil {
				r.f.Close()
			}
		default:
		}
	}
}

// pull pulls a layer into a file without a name.
func pull(ctx context.Context, l *layer, dir string, m *meter, detail string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "layer-*")
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	os.Remove(f.Name())
	for try := 1; ; try++ {
		var n int64
		n, err = pullOnce(ctx, l, f, m, detail)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			return f, nil
		}
		m.add(-n, detail)
		var wrong *DigestError
		if try == attempts || ctx.Err() != nil || errors.As(err, &wrong) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
}

func pullOnce(ctx context.Context, l *layer, f *os.File, m *meter, detail string) (n int64, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if err := f.Truncate(0); err != nil {
		return 0, err
	}
	r, err := l.open(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	body := &counted{r, func(k int64) { n += k; m.add(k, detail) }}
	_, err = io.Copy(f, verify(body, "layer "+l.blob.Digest, l.blob.Digest, l.blob.Size))
	return n, err
}
