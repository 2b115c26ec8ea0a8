//go:build linux

package workerinit

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// cacheDir is a cache of the worker; fill makes its content as the worker would.
func cacheDir(t *testing.T, fill func(dir string) error) string {
	t.Helper()
	base, err := os.MkdirTemp("", "ws-cache")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rmtree.Remove(base) })
	dir := filepath.Join(base, "cache")
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, worker, worker))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCacheIsTended(t *testing.T) {
	outside := t.TempDir()
	if err := errors.Join(os.Chmod(outside, 0o777), os.WriteFile(outside+"/file", []byte("mine"), 0o666)); err != nil {
		t.Fatal(err)
	}
	write := func(bytes int) func(string) error {
		return func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/sub", 0o755), os.WriteFile(dir+"/sub/file", make([]byte, bytes), 0o444), os.Symlink(outside, dir+"/out"),
				syscall.Mkfifo(dir+"/fifo", 0o600), os.WriteFile(dir+"/sparse", nil, 0o600), os.Truncate(dir+"/sparse", 1<<40))
		}
	}
	closed := func(fill func(string) error) func(string) error {
		return func(dir string) error { return errors.Join(fill(dir), os.Chmod(dir+"/sub", 0), os.Chmod(dir, 0)) }
	}
	deep := func(dir string) error {
		at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		for i := 0; i < rmtree.MaxDepth+10 && err == nil; i++ {
			if err = unix.Mkdirat(at, "d", 0o700); err != nil {
				break
			}
			if err = unix.Fchownat(at, "d", worker, worker, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				break
			}
			var next int
			next, err = unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			unix.Close(at)
			at = next
		}
		unix.Close(at)
		return err
	}
	for _, tt := range []struct {
		name string
		fill func(string) error
		note string // of the cache; empty: none, and it is kept
	}{
		{"small", write(1 << 20), ""},
		{"small and closed", closed(write(1 << 20)), ""},
		{"large", write(5 << 20), "was emptied: it is larger than 4M"},
		{"large and closed", closed(write(5 << 20)), "was emptied: it is larger than 4M"},
		{"empty", func(string) error { return nil }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := cacheDir(t, tt.fill)
			before, _ := os.ReadDir(dir)
			g := start(t, "--cache", strconv.Itoa(4<<20)+":"+dir)
			if tt.note != "" {
				g.expect("NOTE the cache " + dir + " " + tt.note)
			}
			g.expect("READY")
			after, err := os.ReadDir(dir)
			if err != nil || tt.note == "" && len(after) != len(before) || tt.note != "" && len(after) > 0 {
				t.Errorf("before %v, after %v (%v)", before, after, err)
			}
			if info, err := os.Lstat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info, err)
			}
			if b, err := os.ReadFile(outside + "/file"); string(b) != "mine" {
				t.Errorf("what a link leads to was touched: %q, %v", b, err)
			}
			g.stop()
		})
	}
	t.Run("deep", func(t *testing.T) {
		base := cacheDir(t, func(string) error { return nil })
		if err := errors.Join(deep(base), os.Chown(base, worker, worker)); err != nil {
			t.Fatal(err)
		}
		g := start(t, "--cache", strconv.Itoa(4<<30)+":"+base)
		g.expect("NOTE the cache " + base + " was emptied: its directories are nested too deep")
		g.expect("READY")
		g.stop()
	})
	t.Run("two", func(t *testing.T) {
		one, two := cacheDir(t, write(5<<20)), cacheDir(t, write(5<<20))
		g := start(t, "--cache", strconv.Itoa(4<<20)+":"+one, "--cache", strconv.Itoa(4<<20)+":"+two)
		g.expect("NOTE the cache " + one)
		g.expect("NOTE the cache " + two)
		g.expect("READY")
		g.stop()
	})
}

// A cache of another user would be one of another grant.
func TestCacheOfAnotherUser(t *testing.T) {
	dir := cacheDir(t, func(string) error { return nil })
	if err := os.Chown(dir, worker+1, worker+1); err != nil {
		t.Fatal(err)
	}
	g := start(t, "--cache", "1000000:"+dir)
	if line := g.expect("FAILED the cache " + dir); !strings.Contains(line, "--volumes") {
		t.Errorf("no word on what to do: %q", line)
	}
}

func TestParseCache(t *testing.T) {
	if c, err := parseCache("5:/a:b"); err != nil || c != (Cache{"/a:b", 5}) {
		t.Errorf("%v, %v", c, err)
	}
	for _, text := range []string{"", "5", "5:a", "0:/a", "-1:/a", "x:/a", ":/a"} {
		if c, err := parseCache(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
	for n, want := range map[int64]string{10 << 30: "10G", 3 << 19: "1.5M", 1000: "1000", 1 << 10: "1K"} {
		if got := sizeText(n); got != want {
			t.Errorf("sizeText(%d) = %s, want %s", n, got, want)
		}
	}
}
