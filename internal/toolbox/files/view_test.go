//go:build linux

package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// house is a machine with a project in it; the worker sees parts of it.
type house struct{ dir, src, out, outside, view string }

// inHouse makes one, and the view of a worker with its working directory
// /workspace.
func inHouse(t testing.TB) house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := house{dir: dir, src: dir + "/project/src", out: dir + "/project/out", outside: dir + "/home/.ssh", view: dir + "/view"}
	for name, text := range map[string]string{
		"project/src/a.txt": "in src", "project/src/sub/b.txt": "in sub", "project/out/old.txt": "old", "project/out/.git/config": "git",
		"project/out/.git/hooks/x": "hook", "project/beside.txt": "beside", "home/.ssh/id": "secret", "one/file.txt": "one",
		"project/out/.gitignore": "ignored.txt\n", "project/out/ignored.txt": "x", "project/.gitignore": "old.txt\n",
	} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.MkdirAll(h.view+"/workspace", 0o755)
	for target, source := range map[string]string{"src": h.src, "out": h.out, "one.txt": dir + "/one/file.txt"} {
		os.Symlink(source, h.view+"/workspace/"+target)
	}
	if _, err := Use("/workspace", []Mount{
		{Target: "/", Source: h.view, ReadOnly: true}, {Target: "/workspace/src", Source: h.src, ReadOnly: true}, {Target: "/workspace/out", Source: h.out},
		{Target: "/workspace/out/.git", Source: h.out + "/.git", ReadOnly: true}, {Target: "/workspace/one.txt", Source: dir + "/one/file.txt"},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range view.mounts {
			unix.Close(m.Handle)
		}
		view = nil
	})
	return h
}

func read(p string) (string, error) {
	r, err := Read(context.Background(), tool.ReadFileArgs{Path: p})
	if err != nil {
		return "", err
	}
	return r.Content, nil
}

func write(p, text string) error {
	_, err := Write(context.Background(), tool.WriteFileArgs{Path: p, Content: text})
	return err
}

func TestViewReads(t *testing.T) {
	h := inHouse(t)
	links := map[string]string{
		"src/out": "../../../home/.ssh/id", "src/abs": h.outside + "/id", "src/dir": h.outside, "src/up": "..", "src/in": "sub/b.txt", "src/back": "sub/../a.txt",
		"src/proc": "/proc/self/fd/0", "src/other": "../out/old.txt",
	}
	for name, to := range links {
		os.Symlink(to, h.dir+"/project/"+name)
	}
	for p, want := range map[string]string{
		"src/a.txt": "in src", "/workspace/src/sub/b.txt": "in sub", "./src//sub/../a.txt": "in src", "src/in": "in sub", "src/back": "in src",
		"out/.git/config": "git", "one.txt": "one",
	} {
		if got, err := read(p); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	for _, p := range []string{
		"src/out", "src/abs", "src/dir/id", "src/up/beside.txt", "src/proc", "src/other",
		"src/../../beside.txt", "../project/beside.txt", h.outside + "/id", h.src + "/a.txt", "/etc/passwd", "/proc/self/environ",
		"/", "src/sub/../../../home/.ssh/id", "one.txt/x", "/workspace/../../../../etc/passwd",
	} {
		if got, err := read(p); err == nil {
			t.Errorf("%s gives %q", p, got)
		} else if strings.Contains(err.Error(), h.dir) && !strings.HasPrefix(p, h.dir) {
			t.Errorf("%s: the error tells paths of the machine: %v", p, err)
		}
	}
}

func TestViewWrites(t *testing.T) {
	h := inHouse(t)
	for name, to := range map[string]string{
		"out/dir": h.outside, "out/file": h.outside + "/new", "out/up": "..", "out/git": ".git", "out/src": "../src", "out/again": "old.txt", "out/config": ".git/config",
	} {
		os.Symlink(to, h.dir+"/project/"+name)
	}
	for _, p := range []string{"out/new.txt", "out/made/for/it.txt", "/workspace/out/old.txt", "out/again", "one.txt"} {
		if err := write(p, "written"); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		if got, err := read(p); err != nil || strings.TrimSpace(got) != "written" {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	if b, _ := os.ReadFile(h.out + "/made/for/it.txt"); string(b) != "written" {
		t.Errorf("here it is %q", b)
	}
	for p, says := range map[string]string{
		"src/new.txt": "read-only", "src/a.txt": "read-only", "src/made/x": "read-only", "new.txt": "read-only", "/new.txt": "read-only", "made/x": "read-only",
		"out/.git/config": "read-only", "out/.git/hooks/x": "read-only", "out/.git/new": "read-only", "out/.git/made/x": "read-only",
		"out/git/config": "read-only", "out/git/hooks/new": "read-only", "out/git/made/x": "read-only", "out/config": "read-only",
		"out/dir/x": "leads out", "out/file": "leads out", "out/up/x": "leads out", "out/src/x": "leads out", "out/dir/made/x": "leads out",
		"out/../../beside.txt": "", h.dir + "/project/beside.txt": "", "/tmp/planted-by-a-test": "", "out": "directory", "out/.git": "directory",
	} {
		if err := write(p, "planted"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", p, err, says)
		}
	}
	if _, err := Edit(t.Context(), tool.EditFileArgs{Path: "out/git/config", OldString: "git", NewString: "planted"}); err == nil {
		t.Error("a file that is read-only was edited")
	}
	if _, err := Edit(t.Context(), tool.EditFileArgs{Path: "one.txt", OldString: "written", NewString: "edited"}); err != nil {
		t.Errorf("a file that is a mount: %v", err)
	}
	if b, _ := os.ReadFile(h.dir + "/one/file.txt"); string(b) != "edited" {
		t.Errorf("it is %q", b)
	}
	filepath.WalkDir(h.dir, func(p string, d os.DirEntry, _ error) error {
		if b, _ := os.ReadFile(p); d.Type().IsRegular() && string(b) == "planted" {
			t.Errorf("%s was planted", p)
		}
		return nil
	})
	if e, _ := os.ReadDir(h.dir + "/one"); len(e) != 1 {
		t.Errorf("beside the file: %v", e)
	}
}

// TestViewLists: what is listed and searched is what a worker with mounts of its
// own would see.
func TestViewLists(t *testing.T) {
	h := inHouse(t)
	os.Symlink(h.outside, h.src+"/dir")
	list := func(a tool.ListFilesArgs) string {
		t.Helper()
		r, err := List(t.Context(), a)
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		var out []string
		for _, e := range r.Entries {
			out = append(out, e.Path+" "+e.Type)
		}
		return strings.Join(out, "; ") + r.Note
	}
	const skipped = "skipped by .gitignore: out/ignored.txt" + howToInclude
	for want, a := range map[string]tool.ListFilesArgs{
		"one.txt file; out directory; src directory":                                   {},
		"/workspace directory":                                                         {Path: "/"},
		"src/a.txt file; src/dir symlink; src/sub directory":                           {Path: "src"},
		"one.txt file; out/old.txt file; src/a.txt file; src/sub/b.txt file" + skipped: {Glob: "**/*.txt"},
		"/workspace/out/old.txt file; /workspace/src/a.txt fileskipped by .gitignore: /workspace/out/ignored.txt" + howToInclude: {Path: "/", Glob: "workspace/*/*.txt"},
		"out/.gitignore file; out/old.txt file" + skipped:                                                                        {Path: "out", Glob: "*", Hidden: true},
		"src/a.txt file; src/sub/b.txt file":                                                                                     {Path: "out/../src", Glob: "**/*.txt"},
	} {
		if got := list(a); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
	r, err := Search(t.Context(), tool.SearchFilesArgs{Pattern: "in|secret|old", Path: "."})
	if err != nil || len(r.Matches) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, p := range []string{"src/dir", "..", h.outside, "/etc"} {
		if r, err := Search(t.Context(), tool.SearchFilesArgs{Pattern: "secret", Path: p}); err == nil && len(r.Matches) > 0 {
			t.Errorf("%s: %+v", p, r)
		}
		if r, err := List(t.Context(), tool.ListFilesArgs{Path: p}); err == nil && p != ".." {
			t.Errorf("%s: %+v", p, r)
		}
	}
}

// TestViewRace: a directory that becomes a link while it is used leads nowhere.
func TestViewRace(t *testing.T) {
	h := inHouse(t)
	os.MkdirAll(h.out+"/d/sub", 0o755)
	os.WriteFile(h.out+"/d/id", []byte("harmless"), 0o644)
	os.Symlink(h.outside, h.out+"/l")
	var over atomic.Bool
	swapped := make(chan int)
	go func() {
		n := 0
		for ; !over.Load(); n++ {
			unix.Renameat2(unix.AT_FDCWD, h.out+"/d", unix.AT_FDCWD, h.out+"/l", unix.RENAME_EXCHANGE)
		}
		swapped <- n
	}()
	refused := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if got, err := read("out/d/id"); err != nil {
			refused++
		} else if strings.TrimSpace(got) != "harmless" {
			t.Fatalf("it reads %q", got)
		}
		_ = write("out/d/planted", "x")
		_ = write("out/d/made/planted", "x")
		if r, err := Search(t.Context(), tool.SearchFilesArgs{Pattern: "secret", Path: "out"}); err == nil && len(r.Matches) > 0 {
			t.Fatalf("it finds %+v", r.Matches)
		}
		var b bytes.Buffer
		_ = Pack(t.Context(), &b, "out")
		if bytes.Contains(b.Bytes(), []byte("secret")) {
			t.Fatal("it packs what is outside")
		}
	}
	over.Store(true)
	if n := <-swapped; n < 10 || refused == 0 {
		t.Errorf("control: %d swaps, %d refused", n, refused)
	}
	if e, _ := os.ReadDir(h.outside); len(e) != 1 {
		t.Errorf("outside is %v", e)
	}
}

func TestViewPacks(t *testing.T) {
	h := inHouse(t)
	var b bytes.Buffer
	if err := Pack(t.Context(), &b, "/workspace/src"); err != nil || !bytes.Contains(b.Bytes(), []byte("src/sub/b.txt")) {
		t.Errorf("%v", err)
	}
	if err := Pack(t.Context(), &b, "one.txt"); err != nil || !bytes.Contains(b.Bytes(), []byte("one.txt")) {
		t.Errorf("%v", err)
	}
	for _, p := range []string{h.outside, "/etc/passwd", "src/../../home"} {
		if err := Pack(t.Context(), &b, p); err == nil {
			t.Errorf("%s was packed", p)
		}
	}
	in := func() *bytes.Buffer { return stream(t, headerOf("x"), headerOf("d/y"), headerOf(".git/z")) }
	if err := Unpack(t.Context(), in(), "out"); !errors.Is(err, unix.EROFS) {
		t.Errorf("into .git: %v", err)
	}
	if err := Unpack(t.Context(), in(), "src"); !errors.Is(err, unix.EROFS) {
		t.Errorf("into src: %v", err)
	}
	if b, err := os.ReadFile(h.out + "/d/y"); err != nil || string(b) != "d/y" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Unpack(t.Context(), in(), h.outside); err == nil {
		t.Error("outside")
	}
}

func headerOf(name string) tar.Header { return tar.Header{Name: name} }
