//go:build linux

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/tool"
)

func content(t *testing.T, p string) string {
	t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names of all that is in a directory, to see that nothing was left behind.
func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// checkedWrite is Write after CheckWrite, which must say the same and change
// nothing.
func checkedWrite(t *testing.T, a tool.WriteFileArgs) (*tool.WriteFileResult, error) {
	t.Helper()
	before := names(t, ".")
	check := CheckWrite(ctx, a)
	if now := names(t, "."); !slices.Equal(now, before) {
		t.Errorf("the check of %s changed something: %q, was %q", a.Path, now, before)
	}
	r, err := Write(ctx, a)
	if fmt.Sprint(check) != fmt.Sprint(err) {
		t.Errorf("the check of %s says %v, the call %v", a.Path, check, err)
	}
	return r, err
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	defer unix.Umask(unix.Umask(0o022))
	tree(t, ".", map[string]string{"old": "before", "run": "#!", "target/file": "x", "dir/": ""})
	for name, mode := range map[string]os.FileMode{"old": 0o640, "run": 0o755 | os.ModeSetuid} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "target/file", "link2": "link", "dangling": "target/new", "abs": filepath.Join(dir, "target/abs"), "nowhere": "missing/x", "dirlink": "dir"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path    string
		exec    bool
		at      string // where it must stand then
		mode    os.FileMode
		created bool
		err     string
	}{
		{path: "new", at: "new", mode: 0o644, created: true},
		{path: "newrun", exec: true, at: "newrun", mode: 0o755, created: true},
		{path: "old", at: "old", mode: 0o640},
		{path: "old", exec: true, at: "old", mode: 0o750},
		{path: "run", at: "run", mode: 0o755},
		{path: "a/b//c/new", at: "a/b/c/new", mode: 0o644, created: true},
		{path: filepath.Join(dir, "q/new"), at: "q/new", mode: 0o644, created: true},
		{path: "link2", at: "target/file", mode: 0o644},
		{path: "dangling", at: "target/new", mode: 0o644, created: true},
		{path: "abs", at: "target/abs", mode: 0o644, created: true},
		{path: "dirlink/x", at: "dir/x", mode: 0o644, created: true},
		{path: "dir", err: "is a directory"},
		{path: "dirlink", err: "is a directory"},
		{path: "dir/", err: "is a directory"},
		{path: "new/x", err: "not a directory"},
		{path: "nowhere", err: "no such file"},
		{path: strings.Repeat("n", 256), err: "name too long"},
		{path: "", err: "path is empty"},
	} {
		text := "text of " + c.path
		r, err := checkedWrite(t, tool.WriteFileArgs{Path: c.path, Content: text, Executable: c.exec})
		if !wantErr(t, err, c.err) || err != nil {
			continue
		}
		if r.Created != c.created || r.Bytes != int64(len(text)) || r.Note != "" || content(t, c.at) != text {
			t.Errorf("%s: %+v, %q", c.path, r, content(t, c.at))
		}
		if st, _ := os.Lstat(c.at); st.Mode() != c.mode {
			t.Errorf("%s: mode %v, want %v", c.path, st.Mode(), c.mode)
		}
	}
	if to, _ := os.Readlink("link2"); to != "link" {
		t.Error("a symbolic link was replaced")
	}
	if got := names(t, "."); slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, ".workshop-") }) {
		t.Errorf("left behind: %q", got)
	}
}

func TestWriteBinary(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	if _, err := Write(ctx, tool.WriteFileArgs{Path: p, Content: "AP8=", Binary: true}); err != nil || content(t, p) != "\x00\xff" {
		t.Error(err)
	}
	_, err := Write(ctx, tool.WriteFileArgs{Path: p, Content: "not base64", Binary: true})
	wantErr(t, err, "not valid base64")
	_, err = Write(ctx, tool.WriteFileArgs{Path: p, Content: strings.Repeat("x", tool.MaxWriteBytes+1)})
	wantErr(t, err, "at most 8388608 can be written")
}

// TestWriteLeavesNothing: a call that fails or is cancelled has no effect.
func TestWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tree(t, ".", map[string]string{"f": "before"})
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Write(over, tool.WriteFileArgs{Path: "f", Content: "x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The lock is passed, the write isn't.
	to, err := resolve("f", makeDirs)
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	if _, err := to.put(over, []byte("x"), false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Write(ctx, tool.WriteFileArgs{Path: "made/for/" + strings.Repeat("n", 256), Content: "x"}); err == nil {
		t.Error("a name that is too long is written")
	}
	if got := names(t, "."); content(t, "f") != "before" || !slices.Equal(got, []string{"f"}) {
		t.Errorf("%q, %q", got, content(t, "f"))
	}
}

// TestWriteIsAtomic: whoever reads meanwhile sees all of one content.
func TestWriteIsAtomic(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	contents := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	if _, err := Write(ctx, tool.WriteFileArgs{Path: p, Content: contents[0]}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range contents {
		wg.Go(func() {
			for range 50 {
				if _, err := Write(ctx, tool.WriteFileArgs{Path: p, Content: c}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		if got := content(t, p); !slices.Contains(contents, got) {
			t.Fatalf("%d bytes: neither the one nor the other", len(got))
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestWriteHelper runs in a mount namespace of its own, and then as another
// user, as TestWriteMounts starts it.
func TestWriteHelper(t *testing.T) {
	dir := os.Getenv("WRITE_HELPER")
	if dir == "" {
		return // not a test by itself
	}
	t.Chdir(dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread() // its namespace and user stay with it
	must(unix.Mount("src", "dst", "", unix.MS_BIND, ""))
	must(unix.Mount("src", "rodst", "", unix.MS_BIND, ""))
	must(unix.Mount("", "rodst", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	must(unix.Mount("rodir", "rodir", "", unix.MS_BIND, ""))
	must(unix.Mount("", "rodir", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	r, err := checkedWrite(t, tool.WriteFileArgs{Path: "dst", Content: "in place"})
	if err != nil || !strings.Contains(r.Note, "in place") || r.Created || content(t, "src") != "in place" {
		t.Errorf("a file that is a mount: %+v, %v", r, err)
	}
	if r, err := Edit(ctx, tool.EditFileArgs{Path: "dst", OldString: "in place", NewString: "ok"}); err != nil || r.Note == "" || content(t, "src") != "ok" {
		t.Errorf("a file that is a mount: %+v, %v", r, err)
	}
	_, err = checkedWrite(t, tool.WriteFileArgs{Path: "rodst", Content: "x"})
	wantErr(t, err, "read-only")
	// What no text of it helps against is said first.
	for _, old := range []string{"none", "ok", ""} {
		a := tool.EditFileArgs{Path: "rodst", OldString: old, NewString: "x"}
		wantErr(t, CheckEdit(ctx, a), map[bool]string{true: "old_string is empty", false: "read-only"}[old == ""])
	}
	must(unix.Chown("mine", 1000, 1000))
	must(unix.Chmod("mine", 0o400))
	must(unix.Chown("free", 1000, 1000))
	must(unix.Chown("open", 1000, 1000))
	must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) // as in a worker
	must(unix.Setresgid(1000, 1000, 1000))
	must(unix.Setresuid(1000, 1000, 1000))
	must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	_, err = checkedWrite(t, tool.WriteFileArgs{Path: "open/new", Content: "x"})
	must(err)
	_, err = checkedWrite(t, tool.WriteFileArgs{Path: "open/new", Content: "y"})
	must(err)
	_, err = Read(ctx, tool.ReadFileArgs{Path: "open/new"})
	must(err)
	// The directory is somebody else's, the file is ours.
	r, err = checkedWrite(t, tool.WriteFileArgs{Path: "free", Content: "longer than before"})
	if err != nil || r.Note == "" || content(t, "free") != "longer than before" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = checkedWrite(t, tool.WriteFileArgs{Path: "free", Content: "short"})
	if err != nil || content(t, "free") != "short" {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = checkedWrite(t, tool.WriteFileArgs{Path: "mine", Content: "x"})
	wantErr(t, err, "permission denied")
	_, err = checkedWrite(t, tool.WriteFileArgs{Path: "new", Content: "x"})
	wantErr(t, err, "permission denied")
	// Of what is somebody else's and mounted read-only, the mount is the reason.
	for _, p := range []string{"rodst", "rodir/file", "rodir/new", "rodir/made/new"} {
		_, err = checkedWrite(t, tool.WriteFileArgs{Path: p, Content: "x"})
		wantErr(t, err, p+": the file system is mounted read-only")
	}
}

// TestWriteMounts: a file that is a mount of its own can't be replaced; what is
// mounted read-only, or isn't writable, isn't replaced though its directory is.
func TestWriteMounts(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "mounts need root")
	dir := t.TempDir()
	for _, p := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree(t, dir, map[string]string{"src": "before", "dst": "", "rodst": "", "mine": "m", "free": "f", "open/": "", "rodir/file": ""})
	cmd := exec.Command("unshare", "-m", os.Args[0], "-test.run", "^TestWriteHelper$", "-test.v")
	cmd.Env = append(os.Environ(), "WRITE_HELPER="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"dst", "free", "mine", "open", "rodir", "rodst", "src"}) {
		t.Errorf("left behind: %q", got)
	}
}
