//go:build linux

package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// stream makes a tar stream; files hold their names.
func stream(t testing.TB, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		body := ""
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			h.Typeflag, body = tar.TypeReg, h.Name
			h.Size = int64(len(body))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// listing tells what is below a directory: modes, links, contents.
func listing(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			link, _ := os.Readlink(p)
			out = append(out, rel+" -> "+link)
		case info.Mode().IsRegular():
			b, _ := os.ReadFile(p)
			out = append(out, fmt.Sprintf("%s %v %s", rel, info.Mode(), b))
		default:
			out = append(out, fmt.Sprintf("%s %v", rel, info.Mode()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPackUnpack: what is packed comes out the same.
func TestPackUnpack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	long := strings.Repeat("n", 200)
	for _, d := range []string{"a/b", "a/empty", "a/" + long} {
		os.MkdirAll(filepath.Join(from, d), 0o755)
	}
	old := time.Unix(1_000_000_000, 0)
	for name, mode := range map[string]fs.FileMode{"a/x": 0o755, "a/b/y": 0o640, "a/" + long + "/" + long: 0o600, "a/\xff": 0o644} {
		os.WriteFile(filepath.Join(from, name), []byte(name), mode)
		os.Chmod(filepath.Join(from, name), mode)
		os.Chtimes(filepath.Join(from, name), old, old)
	}
	os.Symlink("/etc/passwd", filepath.Join(from, "a/out"))
	os.Symlink("b/../x", filepath.Join(from, "a/in"))
	os.Link(filepath.Join(from, "a/x"), filepath.Join(from, "a/x2"))
	var b bytes.Buffer
	if err := Pack(t.Context(), &b, from+"/./a/"); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(t.Context(), bytes.NewReader(b.Bytes()), to); err != nil {
		t.Fatal(err)
	}
	want := listing(t, from)
	if got := listing(t, to); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if info, _ := os.Stat(filepath.Join(to, "a/x")); !info.ModTime().Equal(old) {
		t.Errorf("the time is %v", info.ModTime())
	}
	// Once more, over what is there.
	if err := Unpack(t.Context(), bytes.NewReader(b.Bytes()), to); err != nil || !slices.Equal(listing(t, to), want) {
		t.Errorf("again: %v", err)
	}
}

func TestPackNames(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644)
	os.Symlink(".", filepath.Join(dir, "d"))
	os.Symlink("f", filepath.Join(dir, "l"))
	unix.Mkfifo(filepath.Join(dir, "p"), 0o600)
	for path, want := range map[string]tar.Header{
		"/f":     {Name: "f", Typeflag: tar.TypeReg},
		"/l":     {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "f"},
		"/d/l":   {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "f"}, // above the last one links are followed
		"/d/f":   {Name: "f", Typeflag: tar.TypeReg},
		"/p":     {Name: "p", Typeflag: tar.TypeFifo},
		"":       {Name: filepath.Base(dir) + "/", Typeflag: tar.TypeDir},
		"/../..": {Name: filepath.Base(filepath.Dir(filepath.Dir(dir))) + "/", Typeflag: tar.TypeDir},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() { w.CloseWithError(Pack(ctx, w, dir+path)) }()
		h, err := tar.NewReader(r).Next()
		cancel()
		r.Close()
		if err != nil || h.Name != want.Name || h.Typeflag != want.Typeflag || h.Linkname != want.Linkname || h.Uid != os.Getuid() && path != "/../.." {
			t.Errorf("%s: %+v, %v", path, h, err)
		}
	}
	for path, want := range map[string]string{
		dir + "/none": "no such file", dir + "/none/x": "no such file", dir + "/f/x": "not a directory", "": "empty", "a\x00": "zero byte",
		"/proc/self/mem": "closed", "/proc/self/fd/0": "closed", "/dev/fd/0": "closed",
	} {
		var b bytes.Buffer
		if err := Pack(t.Context(), &b, path); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("%q: %v, %d bytes", path, err, b.Len())
		}
	}
	if err := Pack(t.Context(), io.Discard, dir+"/none"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v", err)
	}
	// The kernel's own are left out: they would never end, or not be as long as
	// they say.
	var b bytes.Buffer
	if err := Pack(t.Context(), &b, "/sys"); err != nil || b.Len() > 4<<10 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}

// TestPackMisses: what can't be read is named, and the stream isn't whole.
func TestPackMisses(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "another user's files need root")
	dir := openDirectory(t)
	for i := range 9 {
		os.WriteFile(fmt.Sprintf("%s/%d", dir, i), []byte("x"), map[bool]fs.FileMode{true: 0o644, false: 0o600}[i == 0])
	}
	os.Mkdir(dir+"/closed", 0o700)
	var b bytes.Buffer
	err := asUser(t, func() error { return Pack(t.Context(), &b, dir) })
	if err == nil || strings.Count(err.Error(), "permission denied") != maxMissed || !strings.Contains(err.Error(), "and 4 more") {
		t.Errorf("%v", err)
	}
	r := tar.NewReader(io.MultiReader(&b, broken{}))
	var names []string
	for {
		h, err := r.Next()
		if err != nil {
			if err != errBroken {
				t.Errorf("at the end: %v", err)
			}
			break
		}
		names = append(names, h.Name)
	}
	if !slices.Contains(names, filepath.Base(dir)+"/0") {
		t.Errorf("%q", names)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }
