//go:build linux

package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

type zeros struct{ read func() }

func (z zeros) Read(p []byte) (int, error) {
	z.read()
	clear(p)
	return len(p), nil
}

// TestHoles: B60: a sparse file of a few bytes takes no place, and unpacking it
// ends with the command.
func TestHoles(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ctx, cancel := context.WithCancel(t.Context())
	x := newExtractor(ctx, fd, Limits{}, false)
	defer x.forget()
	const size = 64<<20 + 5
	m := &metadata{mode: 0o644}
	if err := x.file("a", m, size, io.LimitReader(zeros{func() {}}, size)); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "a"), &st); err != nil || st.Size != size || st.Blocks*512 > 1<<20 {
		t.Errorf("%d bytes, %d blocks, %v", st.Size, st.Blocks, err)
	}
	reads := 0
	err = x.file("b", m, size, io.LimitReader(zeros{func() {
		if reads++; reads == 3 {
			cancel()
		}
	}}, size))
	if !errors.Is(err, context.Canceled) || reads != 3 {
		t.Errorf("%v after %d reads", err, reads)
	}
	if _, err := os.Stat(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
}
