package rmtree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile fills a directory as a worker may that wants its cache neither measured nor
// removed: deep, closed, with links to outside.
func hostile(t testing.TB, dir, outside string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, dirFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Close(at) }()
	for i := range depth {
		name := strconv.Itoa(i)
		if i%7 == 0 {
			err = errors.Join(unix.Symlinkat(outside, at, "link"), unix.Mkfifoat(at, "fifo", 0o600))
		}
		if err = errors.Join(err, unix.Mkdirat(at, name, 0o700)); err != nil {
			t.Fatal(i, err)
		}
		next, err := unix.Openat(at, name, dirFlags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			_ = unix.Fchmod(at, 0)
		}
		unix.Close(at)
		at = next
	}
	// Names that a removal could want for itself.
	top, err := os.OpenRoot(dir)
	if err != nil {
		_ = os.Chmod(dir, 0o700)
		top, err = os.OpenRoot(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	if err := errors.Join(top.Mkdir(".removing-1", 0o700), top.WriteFile(".removing-1/x", nil, 0o600), top.WriteFile(".removing-2", nil, 0o600), top.Symlink(outside, ".removing-3")); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(dir, 0)
}

// kept is a directory outside with what must not change.
func kept(t *testing.T) string {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o750), os.WriteFile(dir+"/file", []byte("mine"), 0o640)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		info, err := os.Stat(dir)
		b, e := os.ReadFile(dir + "/file")
		if err = errors.Join(err, e); err != nil || info.Mode().Perm() != 0o750 || string(b) != "mine" {
			t.Errorf("what is outside was touched: %v %v %q", err, info, b)
		}
	})
	return dir
}

// A tree deeper than anybody has descriptors, with closed directories.
func TestRemoveDeep(t *testing.T) {
	outside := kept(t)
	for name, remove := range map[string]func(string) error{
		"remove": Remove,
		"empty": func(dir string) error {
			n, err := Empty(t.Context(), dir)
			if list, e := os.ReadDir(dir); len(list) > 0 || e != nil || n < 1500 {
				t.Errorf("left %v, removed %d: %v", list, n, e)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, now unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			now = before
			now.Cur = maxOpen*2 + 100
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
			dir := filepath.Join(t.TempDir(), "tree")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			hostile(t, dir, outside, 1500)
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := Remove(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}

// A removal ends with its context, and the next one goes on.
func TestEmptyEnds(t *testing.T) {
	dir := t.TempDir()
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := Empty(ended, dir); !errors.Is(err, context.Canceled) || n > 100 {
		t.Errorf("removed %d: %v", n, err)
	}
	if n, err := Empty(t.Context(), dir); err != nil || n < 4900 {
		t.Errorf("removed %d: %v", n, err)
	}
}

func TestRemoveAndSize(t *testing.T) {
	dir := t.TempDir()
	outside := kept(t)
	write := func(name string, bytes int) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, make([]byte, bytes), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 1<<20)
	write("sub/b", 1<<20)
	if err := errors.Join(
		os.Link(dir+"/a", dir+"/sub/a"), os.Symlink(outside, dir+"/out"), os.Symlink(".", dir+"/self"),
		os.WriteFile(dir+"/sparse", nil, 0o600), os.Truncate(dir+"/sparse", 1<<40), syscall.Mkfifo(dir+"/fifo", 0o600),
	); err != nil {
		t.Fatal(err)
	}
	n, err := Size(t.Context(), dir)
	if err != nil || n < 2<<20 || n > 2<<20+1<<17 {
		t.Errorf("Size = %d, %v; want 2 MiB and some", n, err)
	}
	if err := SizeAbove(t.Context(), dir, 3<<20); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir+"/sub", 0); err != nil {
		t.Fatal(err)
	}
	if err := SizeAbove(t.Context(), dir, 3<<19); err != ErrAbove {
		t.Errorf("with a closed directory: %v", err)
	}
	deep := t.TempDir()
	hostile(t, deep, outside, MaxDepth+1)
	_ = os.Chmod(deep, 0o700)
	if err := SizeAbove(t.Context(), deep, 1<<30); err != ErrDeep {
		t.Errorf("a deep one: %v", err)
	}
	if err := Remove(deep); err != nil { // t.TempDir's removal has descriptors for all, but no access
		t.Error(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	many := t.TempDir()
	for i := range 3 * batch {
		if err := os.WriteFile(filepath.Join(many, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := SizeAbove(ended, many, 1<<30); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without time: %v", err)
	}
}
