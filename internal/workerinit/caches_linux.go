package workerinit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// Cache is a directory that outlives the worker, with what an earlier run of the worker
// wrote. PID 1 measures it as the worker's user, before any program of the worker runs.
type Cache struct {
	Dir   string
	Above int64 // bytes on disk above which it is emptied
}

// How long a cache may take before the worker is ready: less than `up` waits.
const (
	measureTime = 10 * time.Second
	emptyTime   = 30 * time.Second
)

// notePrefix begins a line about something that the worker's user should know and that
// doesn't keep the worker from being ready.
const notePrefix = "NOTE "

// parseCache reads BYTES:DIR.
func parseCache(text string) (Cache, error) {
	size, dir, ok := strings.Cut(text, ":")
	n, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil || n <= 0 || !path.IsAbs(dir) {
		return Cache{}, fmt.Errorf("got %q, want BYTES:DIR", text)
	}
	return Cache{dir, n}, nil
}

// tendAll tends all caches at the same time and returns their notes in order.
func tendAll(ctx context.Context, caches []Cache) (notes []string, err error) {
	type result struct {
		note string
		err  error
	}
	results := make([]chan result, len(caches))
	for i, c := range caches {
		results[i] = make(chan result, 1)
		go func() {
			note, err := c.tend(ctx)
			results[i] <- result{note, err}
		}()
	}
	var errs []error
	for _, r := range results {
		got := <-r
		if got.note != "" {
			notes = append(notes, got.note)
		}
		errs = append(errs, got.err)
	}
	return notes, errors.Join(errs...)
}

// tend empties a cache that is too large, and makes sure that the worker can write to
// it, whatever an earlier run did to its mode.
func (c Cache) tend(ctx context.Context) (note string, err error) {
	if err := os.Chmod(c.Dir, 0o700); err != nil {
		return "", c.failed(err)
	}
	within, cancel := context.WithTimeout(ctx, measureTime)
	err = rmtree.SizeAbove(within, c.Dir, c.Above)
	cancel()
	switch {
	case errors.Is(err, rmtree.ErrAbove):
		note = c.empty(ctx, "it is larger than "+sizeText(c.Above))
	case errors.Is(err, rmtree.ErrDeep):
		note = c.empty(ctx, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		note = fmt.Sprintf("the cache %s has too many files to be measured in %v, it stays as it is", c.Dir, measureTime)
	case err != nil:
		note = fmt.Sprintf("the cache %s could not be measured, it stays as it is: %v", c.Dir, err)
	}
	if _, err := makeFile(c.Dir); err != nil {
		return note, c.failed(err)
	}
	return note, nil
}

func (c Cache) failed(err error) error {
	return fmt.Errorf("the cache %s is not writable for uid %d (%w): `workshop down --volumes` removes it", c.Dir, os.Getuid(), unwrapErrno(err))
}

func (c Cache) empty(ctx context.Context, why string) (note string) {
	within, cancel := context.WithTimeout(ctx, emptyTime)
	defer cancel()
	n, err := rmtree.Empty(within, c.Dir)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the cache %s was emptied in part, %d files in %v: %s; the next start goes on", c.Dir, n, emptyTime, why)
	case err != nil:
		return fmt.Sprintf("the cache %s could not be emptied: %s; %v", c.Dir, why, err)
	}
	return fmt.Sprintf("the cache %s was emptied: %s", c.Dir, why)
}

// sizeText is a size as workshop.yaml has it.
func sizeText(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n >= 1<<u.shift {
			return strconv.FormatFloat(float64(n*10>>u.shift)/10, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
