//go:build linux

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/tool"
)

func TestList(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tree(t, ".", map[string]string{
		"b.go": "12345", "a/x.go": "", "a/b/y.go": "", "a.txt": "", "a-b": "", ".hidden": "", ".github/w.yml": "", ".git/config": "", "log.log": "", "a/log.log": "", ".gitignore": "*.log\n/out/\n", "out/z.go": "",
		"empty/": "", "bad\xffname": "", "q/[x].go": "",
	})
	if err := os.Symlink("..", "a/up"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo("pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args tool.ListFilesArgs
		want []string
		err  string
	}{
		{args: tool.ListFilesArgs{}, want: []string{"a-b", "a.txt", "a/", "b.go", "bad\uFFFDname", "empty/", "pipe", "q/"}},
		{args: tool.ListFilesArgs{Hidden: true, Ignored: true}, want: []string{".git/", ".github/", ".gitignore", ".hidden", "a-b", "a.txt", "a/", "b.go", "bad\uFFFDname", "empty/", "log.log", "out/", "pipe", "q/"}},
		{args: tool.ListFilesArgs{Path: "a"}, want: []string{"a/b/", "a/up", "a/x.go"}},
		{args: tool.ListFilesArgs{Path: "a/up/a/"}, want: []string{"a/up/a/b/", "a/up/a/up", "a/up/a/x.go"}},
		{args: tool.ListFilesArgs{Path: "a", Glob: "**/*.go"}, want: []string{"a/b/y.go", "a/x.go"}},
		{args: tool.ListFilesArgs{Glob: "**/*.go"}, want: []string{"a/b/y.go", "a/x.go", "b.go", "q/[x].go"}},
		{args: tool.ListFilesArgs{Glob: "**/*.go", Ignored: true}, want: []string{"a/b/y.go", "a/x.go", "b.go", "out/z.go", "q/[x].go"}},
		{args: tool.ListFilesArgs{Path: "out", Glob: "*"}, want: []string{"out/z.go"}},
		{args: tool.ListFilesArgs{Glob: "*.go"}, want: []string{"b.go"}},
		{args: tool.ListFilesArgs{Glob: "./*.go"}, want: []string{"b.go"}},
		{args: tool.ListFilesArgs{Glob: "*/*.go"}, want: []string{"a/x.go", "q/[x].go"}},
		{args: tool.ListFilesArgs{Glob: "a/**"}, want: []string{"a/b/y.go", "a/up", "a/x.go"}},
		{args: tool.ListFilesArgs{Glob: "{a,q}/*.{go,txt}"}, want: []string{"a/x.go", "q/[x].go"}},
		{args: tool.ListFilesArgs{Glob: `q/\[x].go`}, want: []string{"q/[x].go"}},
		{args: tool.ListFilesArgs{Glob: ".github/*"}, want: []string{".github/w.yml"}},
		{args: tool.ListFilesArgs{Glob: "**", Hidden: true}, want: []string{".github/w.yml", ".gitignore", ".hidden", "a-b", "a.txt", "a/b/y.go", "a/up", "a/x.go", "b.go", "bad\uFFFDname", "pipe", "q/[x].go"}},
		{args: tool.ListFilesArgs{Glob: ".git/*", Ignored: true}, want: nil},
		{args: tool.ListFilesArgs{Glob: "../*"}, err: "give the directory as path"},
		{args: tool.ListFilesArgs{Glob: "/etc/*"}, err: "glob is relative to path"},
		{args: tool.ListFilesArgs{Glob: "[a"}, err: "can't be read"},
		{args: tool.ListFilesArgs{Glob: strings.Repeat("{a,b}", 9)}, err: "more than 256 alternatives"},
		{args: tool.ListFilesArgs{Glob: strings.Repeat("a", 1025)}, err: "at most 1024"},
		{args: tool.ListFilesArgs{Path: "b.go"}, err: "b.go is a file, not a directory"},
		{args: tool.ListFilesArgs{Path: "b.go/x"}, err: "a part of the path is not a directory"},
		{args: tool.ListFilesArgs{Path: "none"}, err: "no such file"},
		{args: tool.ListFilesArgs{MaxEntries: -1}, err: "1 to 10000"},
	} {
		r, err := List(ctx, c.args)
		if !wantErr(t, err, c.err) || err != nil {
			continue
		}
		var got []string
		for _, e := range r.Entries {
			p := e.Path
			if e.Type == "directory" {
				p += "/"
			}
			got = append(got, p)
		}
		if !slices.Equal(got, c.want) || r.Truncated {
			t.Errorf("%+v:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
	r, err := List(ctx, tool.ListFilesArgs{Path: "a"})
	want := []tool.Entry{{Path: "a/b", Type: "directory"}, {Path: "a/up", Type: "symlink", Target: ".."}, {Path: "a/x.go", Type: "file"}}
	if diff := cmp.Diff(want, r.Entries); diff != "" || err != nil {
		t.Errorf("%s, %v", diff, err)
	}
	if r, _ := List(ctx, tool.ListFilesArgs{Glob: "{b.go,pipe}"}); len(r.Entries) != 2 || r.Entries[0].Size != 5 || r.Entries[1].Type != "other" {
		t.Errorf("%+v", r)
	}
}

// TestListBounded: of a directory with many names come the first ones, and no
// more are held than that.
func TestListBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d", (i*7919)%5000)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, glob := range []string{"", "*"} {
		r, err := List(ctx, tool.ListFilesArgs{Path: dir, Glob: glob, MaxEntries: 3})
		if err != nil || !r.Truncated || len(r.Entries) != 3 || r.Entries[0].Path != dir+"/0000" || r.Entries[2].Path != dir+"/0002" {
			t.Errorf("%q: %+v, %v", glob, r, err)
		}
		if r, err = List(ctx, tool.ListFilesArgs{Path: dir, Glob: glob, MaxEntries: 5000}); err != nil || r.Truncated || len(r.Entries) != 5000 {
			t.Errorf("%q: %v, %v", glob, r.Truncated, err)
		}
	}
	d, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := &walker{ctx: ctx, root: d}
	if out, over, err := w.list(d, "", 10, func(entry) bool { return true }); err != nil || !over || len(out) != 10 || out[9].name != "0009" || cap(out) > 4096 {
		t.Errorf("%d of %d, %v, %v", len(out), cap(out), over, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := List(over, tool.ListFilesArgs{Path: dir}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestListRoot: a walk of everything doesn't enter what the kernel makes up.
func TestListRoot(t *testing.T) {
	testutil.Require(t, exists(unix.AT_FDCWD, "/proc/self"), "needs /proc")
	for _, top := range []string{"proc", "sys"} {
		r, err := List(ctx, tool.ListFilesArgs{Path: "/", Glob: top + "/**"})
		if err != nil || len(r.Entries) != 0 || !strings.Contains(r.Note, top) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestListDeep: paths that are longer than the kernel takes end a walk there.
func TestListDeep(t *testing.T) {
	t.Chdir(t.TempDir())
	name := strings.Repeat("d", 200)
	for range 30 { // 6,000 bytes
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("f", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil {
			t.Fatal(err)
		}
	}
	top, err := os.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for range 30 {
		if err := os.Chdir(".."); err != nil {
			t.Fatal(err)
		}
	}
	r, err := List(ctx, tool.ListFilesArgs{Glob: "**"})
	if err != nil || len(r.Entries) < 20 || r.Note == "" {
		t.Errorf("%d entries, %q, %v", len(r.Entries), r.Note, err)
	}
}

// FuzzList: whatever is asked, the entries are sorted, fit into JSON and match.
func FuzzList(f *testing.F) {
	dir := f.TempDir()
	tree(f, dir, sample)
	tree(f, dir, map[string]string{".gitignore": "*.log\n", ".dot/x": "", "bad\xff": ""})
	for _, g := range []string{"", "**", "*/*", "{a,b}*", "[!a]", "sub/**/c", `\`, "**/.*"} {
		f.Add(g, "", false, false, 3)
	}
	f.Fuzz(func(t *testing.T, glob, sub string, hidden, ignored bool, most int) {
		if strings.Contains(sub, "..") {
			return
		}
		r, err := List(ctx, tool.ListFilesArgs{Path: filepath.Join(dir, "x", "..", sub), Glob: glob, Hidden: hidden, Ignored: ignored, MaxEntries: most})
		if err != nil {
			return
		}
		if most > 0 && len(r.Entries) > most {
			t.Errorf("%d entries of %d", len(r.Entries), most)
		}
		for _, e := range r.Entries {
			below, absolute := strings.CutPrefix(e.Path, path.Join(dir, sub)+"/")
			ok := glob == "" || doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "./"), below) || strings.Contains(e.Path, "\uFFFD")
			if !ok || !utf8.ValidString(e.Path) || !absolute {
				t.Errorf("%q: %+v", glob, e)
			}
		}
		if !slices.IsSortedFunc(r.Entries, func(a, b tool.Entry) int { return strings.Compare(listKey(a), listKey(b)) }) {
			t.Errorf("%q: %+v", glob, r.Entries)
		}
	})
}

func listKey(e tool.Entry) string {
	if e.Type == "directory" {
		return e.Path + "/"
	}
	return e.Path
}
