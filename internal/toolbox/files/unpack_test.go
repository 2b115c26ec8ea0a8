//go:build linux

package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// asUser runs a function as a uid that owns nothing.
func asUser(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		if _, _, no := syscall.RawSyscall(unix.SYS_SETRESUID, 64202, 64202, 64202); no != 0 {
			done <- no
			return
		}
		done <- f()
	}()
	return <-done
}

// openDirectory is one that every user reaches.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	os.Chmod(dir, 0o755)
	return dir
}

// eitherWay runs a test with openat2 and without, as on gVisor.
func eitherWay(t *testing.T, test func(*testing.T)) {
	t.Run("openat2", test)
	real := openat2
	t.Cleanup(func() { openat2 = real })
	openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, unix.ENOSYS }
	t.Run("no openat2", test)
}

// TestUnpackStays: nothing is made outside of the directory, whatever stands in
// the stream and whatever links are there.
func TestUnpackStays(t *testing.T) { eitherWay(t, unpackStays) }

func unpackStays(t *testing.T) {
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	reg := func(name string) tar.Header { return tar.Header{Name: name} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	hard := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to}
	}
	for name, test := range map[string]struct {
		in   []tar.Header
		says string // empty: it works
	}{
		"climbs":                     {[]tar.Header{reg("../planted")}, "leads out"},
		"climbs later":               {[]tar.Header{reg("a/../../planted")}, "leads out"},
		"absolute":                   {[]tar.Header{reg("/planted")}, "leads out"},
		"a directory":                {[]tar.Header{dir("..")}, "leads out"},
		"through a link":             {[]tar.Header{link("l", ".."), reg("l/planted")}, "a symbolic link leads out"},
		"through an absolute link":   {[]tar.Header{link("l", "AROUND"), reg("l/planted")}, "a symbolic link leads out"},
		"through two":                {[]tar.Header{dir("d"), link("d/l", ".."), link("m", "d/l/.."), reg("m/planted")}, "a symbolic link leads out"},
		"through one that was there": {[]tar.Header{reg("out/planted")}, "a symbolic link leads out"},
		"makes one over a link":      {[]tar.Header{dir("out")}, "not a directory"},
		"a file over a link":         {[]tar.Header{reg("file")}, ""},
		"a hard link out":            {[]tar.Header{hard("h", "../victim")}, "leads out"},
		"a hard link through":        {[]tar.Header{hard("h", "out/victim")}, "a symbolic link leads out"},
		"a hard link to a link":      {[]tar.Header{hard("h", "file"), reg("h")}, ""},
		"a device":                   {[]tar.Header{{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, "neither file"},
		"a FIFO":                     {[]tar.Header{{Name: "d", Typeflag: tar.TypeFifo}}, "neither file"},
		"over a directory":           {[]tar.Header{reg("dir")}, "directory"},
		"over the directory":         {[]tar.Header{reg(".")}, "directory"},
		"far too long":               {[]tar.Header{reg(strings.Repeat("a/", 10_000) + "x")}, "too long"},
		"links in the directory":     {[]tar.Header{dir("d"), link("l", "d"), reg("l/x")}, ""},
		"set-uid":                    {[]tar.Header{{Name: "s", Mode: 0o6755}, {Name: "sd", Typeflag: tar.TypeDir, Mode: 0o3777}}, ""},
		"no directory first":         {[]tar.Header{reg("p/q/r")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			root := filepath.Join(around, "root")
			os.Mkdir(root, 0o755)
			os.Mkdir(filepath.Join(root, "dir"), 0o755)
			os.WriteFile(filepath.Join(around, "victim"), []byte("untouched"), 0o600)
			os.Symlink("..", filepath.Join(root, "out"))
			os.Symlink("../victim", filepath.Join(root, "file"))
			for i := range test.in {
				test.in[i].Linkname = strings.Replace(test.in[i].Linkname, "AROUND", around, 1)
			}
			err := Unpack(t.Context(), stream(t, test.in...), root)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if b, _ := os.ReadFile(filepath.Join(around, "victim")); string(b) != "untouched" {
				t.Errorf("the victim is %q", b)
			}
			if e, _ := os.ReadDir(around); len(e) != 2 {
				t.Errorf("beside it is %v", e)
			}
			for _, line := range listing(t, root) {
				if name == "set-uid" && strings.ContainsAny(strings.Fields(line)[1], "ugt") {
					t.Errorf("%s", line)
				}
			}
		})
	}
}

// TestUnpackRace: a directory that becomes a link between two steps leads
// nowhere.
func TestUnpackRace(t *testing.T) { eitherWay(t, unpackRace) }

func unpackRace(t *testing.T) {
	around := t.TempDir()
	root := filepath.Join(around, "root")
	os.MkdirAll(filepath.Join(root, "d"), 0o755)
	os.Symlink("..", filepath.Join(root, "l"))
	var over atomic.Bool
	swapped := make(chan int)
	go func() {
		n := 0
		for ; !over.Load(); n++ {
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "d"), unix.AT_FDCWD, filepath.Join(root, "l"), unix.RENAME_EXCHANGE)
		}
		swapped <- n
	}()
	in := stream(t, tar.Header{Name: "d/planted"}, tar.Header{Name: "d/sub", Typeflag: tar.TypeDir}, tar.Header{Name: "d/sub/x"}).Bytes()
	out := 0
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		if Unpack(t.Context(), bytes.NewReader(in), root) != nil {
			out++
		}
	}
	over.Store(true)
	if n := <-swapped; n < 10 || out == 0 {
		t.Errorf("control: %d swaps, %d refused", n, out)
	}
	if e, _ := os.ReadDir(around); len(e) != 1 {
		t.Errorf("beside it is %v", e)
	}
}

func TestUnpackProblems(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/f", nil, 0o644)
	whole := stream(t, tar.Header{Name: strings.Repeat("x", 90)}).Bytes()
	for name, test := range map[string]struct {
		dir  string
		in   io.Reader
		says string
	}{
		"not a directory":   {dir + "/none", bytes.NewReader(whole), "no such file"},
		"a file":            {dir + "/f", bytes.NewReader(whole), "not a directory"},
		"of the kernel":     {"/proc/self", bytes.NewReader(whole), "closed"},
		"no archive":        {dir, strings.NewReader(strings.Repeat("x", 600)), "read the tar stream"},
		"cut off":           {dir, bytes.NewReader(whole[:520]), "unexpected EOF"},
		"cut off in blocks": {dir, bytes.NewReader(whole[:100]), "unexpected EOF"},
		"a reader's error":  {dir, io.MultiReader(bytes.NewReader(whole[:520]), broken{}), "broken"},
	} {
		if err := Unpack(t.Context(), test.in, test.dir); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Unpack(ctx, bytes.NewReader(whole), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if os.Geteuid() == 0 {
		err := asUser(t, func() error { return Unpack(t.Context(), bytes.NewReader(whole), dir) })
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("another's directory: %v", err)
		}
	}
}

func TestUnpackBelongsToTheUser(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "another user needs root")
	dir := openDirectory(t)
	os.Chmod(dir, 0o777)
	in := stream(t, tar.Header{Name: "x", Uid: 0, Gid: 0}, tar.Header{Name: "d/y", Uid: 5})
	if err := asUser(t, func() error { return Unpack(t.Context(), in, dir) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "d", "d/y"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil || st.Uid != 64202 {
			t.Errorf("%s: uid %d, %v", name, st.Uid, err)
		}
	}
}

// FuzzUnpack: nothing that looks like a tar stream makes anything outside.
func FuzzUnpack(f *testing.F) {
	for _, h := range [][]tar.Header{
		{{Name: "a"}, {Name: "d/", Typeflag: tar.TypeDir}, {Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "d/l/x"}},
		{{Name: strings.Repeat("n", 150) + "/x"}, {Name: "h", Typeflag: tar.TypeLink, Linkname: "../x"}},
	} {
		f.Add(stream(f, h...).Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		around := t.TempDir()
		root := filepath.Join(around, "root")
		os.Mkdir(root, 0o755)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = Unpack(ctx, bytes.NewReader(b), root)
		if e, _ := os.ReadDir(around); len(e) != 1 || !slices.ContainsFunc(e, func(d os.DirEntry) bool { return d.Name() == "root" }) {
			t.Fatalf("beside it is %v", e)
		}
	})
}
