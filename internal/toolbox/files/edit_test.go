//go:build linux

package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/tool"
)

func TestEdit(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		file, from, to string
		all            bool
		want           string
		lines          []int
		err            string
	}{
		{file: "a\nb\nc\n", from: "b\n", to: "", want: "a\nc\n", lines: []int{2}},
		{file: "a b a\na", from: "a", to: "x", err: "occurs 3 times in f (lines 1, 2): add surrounding text"},
		{file: "x\na b a", from: "a", to: "x", err: "occurs 2 times in f (all in line 2): add surrounding text"},
		{file: "a b a\na", from: "a", to: "x", all: true, want: "x b x\nx", lines: []int{1, 1, 2}},
		{file: "aaa", from: "aa", to: "b", err: "occurs 2 times"},
		{file: "aaa", from: "aa", to: "b", all: true, want: "ba", lines: []int{1}},
		{file: "a", from: "a", to: "$0\\1", want: "$0\\1", lines: []int{1}},
		{file: "caf\xe9 x", from: "x", to: "y", want: "caf\xe9 y", lines: []int{1}},
		{file: "\uFEFFa\r\nb", from: "a\r\n", to: "c\r\n", want: "\uFEFFc\r\nb", lines: []int{1}},
		{file: "a\r\nb\r\n", from: "a\nb", to: "c", err: `lines of the file end with \r\n; write them so`},
		{file: "a\nb\n", from: "a\r\nb", to: "c", err: `lines of the file end with \n alone`},
		{file: "x\n\tif a {\n\t\tb\n", from: "if a {\n    b", to: "c", err: "with other white space it is at line 2"},
		{file: "one", from: "two", to: "c", err: "old_string is not in f: read the file again"},
		{file: "one", from: "  ", to: "c", err: "read the file again"},
		{file: "one", from: "", to: "c", err: "old_string is empty: give the text to replace; write_file"},
		{file: "one", from: "one", to: "one", err: "nothing would change"},
		{file: strings.Repeat("a", 1<<20), from: strings.Repeat("a", 1<<19), to: "b", err: "occurs more than 100 times"},
		{file: strings.Repeat("a", 1<<20), from: "a", to: strings.Repeat("b", 100), all: true, err: "would have 104857600 bytes"},
		{file: strings.Repeat("a\n", 500), from: "a", to: "b", all: true, want: strings.Repeat("b\n", 500), lines: until(100)},
	} {
		if err := os.WriteFile("f", []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		a := tool.EditFileArgs{Path: "f", OldString: c.from, NewString: c.to, ReplaceAll: c.all}
		check := CheckEdit(ctx, a)
		if got := content(t, "f"); got != c.file {
			t.Errorf("the check changed %.40q to %.40q", c.file, got)
		}
		r, err := Edit(ctx, a)
		if fmt.Sprint(check) != fmt.Sprint(err) {
			t.Errorf("%.40q: the check says %v, the call %v", c.file, check, err)
		}
		if c.err != "" {
			c.want = c.file
		}
		if got := content(t, "f"); got != c.want {
			t.Errorf("%.40q: %.40q, want %.40q", c.file, got, c.want)
		}
		if wantErr(t, err, c.err) && err == nil && (!slices.Equal(r.Lines, c.lines) || r.Replacements != strings.Count(c.file, c.from)) {
			t.Errorf("%.40q: %+v, want %v", c.file, r, c.lines)
		}
	}
	_, err := Edit(ctx, tool.EditFileArgs{Path: "none/x", OldString: "a", NewString: "b"})
	wantErr(t, err, "no such file")
	_, err = Edit(ctx, tool.EditFileArgs{Path: "none", OldString: "a", NewString: "b"})
	wantErr(t, err, "no such file")
	if err := os.Truncate("f", tool.MaxEditFile+1); err != nil {
		t.Fatal(err)
	}
	_, err = Edit(ctx, tool.EditFileArgs{Path: "f", OldString: "a", NewString: "b"})
	wantErr(t, err, "at most 8388608 can be edited")
}

func until(n int) (out []int) {
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

// TestEditChanged: what somebody else writes meanwhile isn't overwritten.
func TestEditChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{"f": "one"})
	to, err := resolve("f", noDirs)
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	tree(t, ".", map[string]string{"f": "two or more"})
	wantErr(t, to.unchanged(), "read it again")
	if err := os.Remove("f"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, to.unchanged(), "read it again")
}

// TestEditAtOnce: of many edits of one file at the same time none is lost.
func TestEditAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	const n = 50
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<%d>\n", i)
	}
	tree(t, ".", map[string]string{"f": b.String()})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := Edit(ctx, tool.EditFileArgs{Path: "f", OldString: fmt.Sprintf("<%d>", i), NewString: "done"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := content(t, "f"); got != strings.Repeat("done\n", n) {
		t.Errorf("%q", got)
	}
}

// FuzzEdit: the file is what bytes.Replace makes of it, or it is as it was.
func FuzzEdit(f *testing.F) {
	p := filepath.Join(f.TempDir(), "f")
	f.Add([]byte("a\r\nb a"), "a", "b", true)
	f.Add([]byte("aaa \xff"), "aa", "", false)
	f.Add([]byte("\tx  y\n"), "x y", "z", false)
	f.Fuzz(func(t *testing.T, before []byte, from, to string, all bool) {
		if err := os.WriteFile(p, before, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Edit(ctx, tool.EditFileArgs{Path: p, OldString: from, NewString: to, ReplaceAll: all})
		want := before
		if err == nil {
			n := bytes.Count(before, []byte(from))
			if want = bytes.ReplaceAll(before, []byte(from), []byte(to)); !all && n != 1 || r.Replacements != n || from == "" {
				t.Errorf("%q: %d replacements of %q", before, n, from)
			}
		}
		if got := content(t, p); got != string(want) {
			t.Errorf("%q: %q, want %q (%v)", before, got, want, err)
		}
	})
}
