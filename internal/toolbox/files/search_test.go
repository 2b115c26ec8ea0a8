//go:build linux

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/tool"
)

func TestSearch(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{
		"a.go": "package a\n\nfunc A() {}\nfunc B() {}\n", "b.txt": "no end: func", "crlf": "one\r\ntwo\r\n", "sub/c.go": "FUNC\n", "sub/log.log": "func\n", ".hidden": "func\n",
		".gitignore": "*.log\n", ".git/x": "func\n", "bin": "func\n\x00", "lateBin": "func\n" + strings.Repeat("x\n", 3*chunk) + "\x00", "latin": "caf\xe9 func\n", "empty": "",
		"wide": strings.Repeat("x", 5000) + "func" + strings.Repeat("é", 5000) + "\nfunc\n", "q/m": "1\n2\n3 hit\n4\n5 hit\n6\n7\n8\n9 hit",
	})
	if err := os.Symlink("a.go", "link.go"); err != nil {
		t.Fatal(err)
	}
	wide := "…" + strings.Repeat("x", 200) + "func" + strings.Repeat("é", 398) + "…"
	for _, c := range []struct {
		args tool.SearchFilesArgs
		want []string // path:line:text
		err  string
		more bool
	}{
		{args: tool.SearchFilesArgs{Pattern: "func"}, want: []string{"a.go:3:func A() {}", "a.go:4:func B() {}", "b.txt:1:no end: func", "latin:1:caf\uFFFD func", "wide:1:" + wide, "wide:2:func"}},
		{args: tool.SearchFilesArgs{Pattern: "func", Glob: "*.go"}, want: []string{"a.go:3:func A() {}", "a.go:4:func B() {}"}},
		{args: tool.SearchFilesArgs{Pattern: "func", Glob: "*.go", IgnoreCase: true}, want: []string{"a.go:3:func A() {}", "a.go:4:func B() {}", "sub/c.go:1:FUNC"}},
		{args: tool.SearchFilesArgs{Pattern: "(?i)func", Glob: "sub/*"}, want: []string{"sub/c.go:1:FUNC"}},
		{args: tool.SearchFilesArgs{Pattern: "func", Hidden: true, Ignored: true, FilesOnly: true}, want: []string{".hidden:0:", "a.go:0:", "b.txt:0:", "lateBin:0:", "latin:0:", "sub/log.log:0:", "wide:0:"}},
		{args: tool.SearchFilesArgs{Pattern: "A() {", Literal: true}, want: []string{"a.go:3:func A() {}"}},
		{args: tool.SearchFilesArgs{Pattern: "^two$"}, want: []string{"crlf:2:two"}},
		{args: tool.SearchFilesArgs{Pattern: `\Atwo\z`}, want: []string{"crlf:2:two"}},
		{args: tool.SearchFilesArgs{Pattern: `(?-m)^two$`}, want: []string{"crlf:2:two"}},
		{args: tool.SearchFilesArgs{Pattern: `a\s+func`}, want: nil},
		{args: tool.SearchFilesArgs{Pattern: `^$`}, want: []string{"a.go:2:"}},
		{args: tool.SearchFilesArgs{Pattern: "func", Path: "sub", Ignored: true}, want: []string{"sub/log.log:1:func"}},
		{args: tool.SearchFilesArgs{Pattern: "func", Path: "sub"}, want: nil},
		{args: tool.SearchFilesArgs{Pattern: "func", Path: "sub/log.log"}, want: []string{"sub/log.log:1:func"}},
		{args: tool.SearchFilesArgs{Pattern: "B", Path: "link.go"}, want: []string{"link.go:4:func B() {}"}},
		{args: tool.SearchFilesArgs{Pattern: "hit", MaxMatches: 2}, want: []string{"q/m:3:3 hit", "q/m:5:5 hit"}, more: true},
		{args: tool.SearchFilesArgs{Pattern: "hit", MaxMatches: 3}, want: []string{"q/m:3:3 hit", "q/m:5:5 hit", "q/m:9:9 hit"}},
		{args: tool.SearchFilesArgs{Pattern: "func", FilesOnly: true, MaxMatches: 1}, want: []string{"a.go:0:"}, more: true},
		{args: tool.SearchFilesArgs{Pattern: "("}, err: "is not a valid RE2 expression: missing closing ): `(`; to search for the text itself, set literal"},
		{args: tool.SearchFilesArgs{Pattern: ""}, err: "pattern is empty"},
		{args: tool.SearchFilesArgs{Pattern: strings.Repeat("a", 9000)}, err: "at most 8192"},
		{args: tool.SearchFilesArgs{Pattern: "(((a{99}){99}){99})"}, err: "RE2"},
		{args: tool.SearchFilesArgs{Pattern: "a", Path: "none"}, err: "no such file"},
		{args: tool.SearchFilesArgs{Pattern: "a", Path: "bin"}, err: "bin is a binary file"},
		{args: tool.SearchFilesArgs{Pattern: "a", Context: 21}, err: "1 to 20"},
	} {
		r, err := Search(ctx, c.args)
		if !wantErr(t, err, c.err) || err != nil {
			continue
		}
		var got []string
		for _, m := range r.Matches {
			got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || r.Truncated != c.more || r.Note != "" && r.Note != "skipped by .gitignore: sub/log.log"+howToInclude {
			t.Errorf("%+v (-want +got)\n%s %v %q", c.args, diff, r.Truncated, r.Note)
		}
	}
	r, err := Search(ctx, tool.SearchFilesArgs{Pattern: "hit", Context: 2, MaxMatches: 2})
	want := []tool.Match{
		{Path: "q/m", Line: 3, Text: "3 hit", Before: []string{"1", "2"}, After: []string{"4", "5 hit"}},
		{Path: "q/m", Line: 5, Text: "5 hit", Before: []string{"3 hit", "4"}, After: []string{"6", "7"}},
	}
	if diff := cmp.Diff(want, r.Matches); diff != "" || err != nil || !r.Truncated {
		t.Errorf("%s %v", diff, err)
	}
}

// TestSearchLong: what is searched in pieces is found as if it weren't.
func TestSearchLong(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	var b bytes.Buffer
	hits := map[int]bool{1: true, 1000: true, 30_000: true, 99_999: true}
	for i := 1; i < 100_000; i++ {
		if hits[i] {
			fmt.Fprintf(&b, "line %d hit\n", i)
		} else {
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	b.WriteString(strings.Repeat("y", 3*maxLine) + " hit\nlast hit")
	if err := os.WriteFile(p, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"hit", "(?i)HIT", `hit\z`, "hit$"} {
		r, err := Search(ctx, tool.SearchFilesArgs{Path: p, Pattern: pattern, Context: 1})
		if err != nil || len(r.Matches) != 5 {
			t.Errorf("%s: %d matches, %v", pattern, len(r.Matches), err)
			continue
		}
		for i, n := range []int{1, 1000, 30_000, 99_999, 100_001} {
			m := r.Matches[i]
			if m.Line != n || n > 1 && n < 100_000 && (len(m.Before) != 1 || m.Before[0] != fmt.Sprintf("line %d", n-1)) || n < 99_999 && (len(m.After) != 1 || m.After[0] != fmt.Sprintf("line %d", n+1)) {
				t.Errorf("%s: %+v", pattern, m)
			}
		}
	}
}

// TestSearchEnds: a call ends in mid-file when its time is over.
func TestSearchEnds(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	if err := os.WriteFile(p, bytes.Repeat([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := Search(short, tool.SearchFilesArgs{Path: dir, Pattern: "(a*)*(a*)*(a*)*b"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// TestSearchBounded: the result has a size, whatever the number of matches is.
func TestSearchBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte(strings.Repeat("a", 999)+"\n"), 6000), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Search(ctx, tool.SearchFilesArgs{Path: dir, Pattern: "a", Context: 20, MaxMatches: 5000})
	size := 0
	for _, m := range r.Matches {
		size += len(m.Text) + len(strings.Join(m.Before, "")) + len(strings.Join(m.After, ""))
	}
	if err != nil || !r.Truncated || size > 2*maxResult {
		t.Errorf("%d bytes, %v, %v", size, r.Truncated, err)
	}
}

// FuzzSearch: what is found is what the expression finds in each line by itself.
func FuzzSearch(f *testing.F) {
	dir := f.TempDir()
	for _, p := range []string{"a", "^a$", `\A\w\z`, "", "[^a]", `b\s`, "(?-m)a$", `\Ba`, "(?s).b"} {
		f.Add(p, []byte("a\r\nb\nab\n\na"), 1, false, false)
	}
	f.Add("^a$", []byte("A\r"), 0, false, true)
	f.Fuzz(func(t *testing.T, pattern string, content []byte, around int, literal, fold bool) {
		p := filepath.Join(dir, "f")
		if err := os.WriteFile(p, content, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Search(ctx, tool.SearchFilesArgs{Path: dir, Pattern: pattern, Context: around, Literal: literal, IgnoreCase: fold, MaxMatches: tool.MaxMatches})
		if err != nil {
			return
		}
		if literal {
			pattern = regexp.QuoteMeta(pattern)
		}
		if fold {
			pattern = "(?i)" + pattern
		}
		re := regexp.MustCompile("(?m)" + pattern)
		var want []int
		if bytes.IndexByte(content, 0) < 0 {
			for i, line := range bytes.Split(content, []byte("\n")) {
				if i == bytes.Count(content, []byte("\n")) && len(line) == 0 {
					break
				}
				if re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
					want = append(want, i+1)
				}
			}
		}
		var got []int
		for _, m := range r.Matches {
			got = append(got, m.Line)
			if !utf8.ValidString(m.Text) || len(m.Before) > around || len(m.After) > around {
				t.Errorf("%+v", m)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" && len(want) <= tool.MaxMatches {
			t.Errorf("%q in %q (-want +got)\n%s", pattern, content, diff)
		}
	})
}

// What a list or a search names, read_file takes as it is: relative to the working
// directory below it, absolute elsewhere, and true where a link is before a "..".
func TestResultPaths(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"work/a.txt": "hit", "work/sub/b.txt": "hit", "work/deep/er/c.txt": "hit", "other/d.txt": "hit"})
	t.Chdir(filepath.Join(dir, "work"))
	if err := os.Symlink("deep/er", "link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"default", "", "sub/b.txt"},
		{"relative", "sub", "sub/b.txt"},
		{"not clean", "./sub//", "sub/b.txt"},
		{"absolute, below", dir + "/work/sub", "sub/b.txt"},
		{"absolute, the working directory", dir + "/work", "sub/b.txt"},
		{"absolute, elsewhere", dir + "/other", dir + "/other/d.txt"},
		{"above", "../other", dir + "/other/d.txt"},
		{"above and back", "../work/sub", "sub/b.txt"},
		{"through a link", "link", "link/c.txt"},
		{"through a link and up", "link/..", "deep/er/c.txt"},
		{"a file", dir + "/work/sub/b.txt", "sub/b.txt"},
		{"a file elsewhere", "../other/d.txt", dir + "/other/d.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Search(ctx, tool.SearchFilesArgs{Path: c.path, Pattern: "hit"})
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, m := range found.Matches {
				paths = append(paths, m.Path)
			}
			if !slices.Contains(paths, c.want) {
				t.Errorf("a search names %q, want %s", paths, c.want)
			}
			if !strings.HasPrefix(c.name, "a file") {
				r, err := List(ctx, tool.ListFilesArgs{Path: c.path, Glob: "**"})
				if err != nil || !slices.ContainsFunc(r.Entries, func(e tool.Entry) bool { return e.Path == c.want }) {
					t.Errorf("a list names %+v, want %s (%v)", r, c.want, err)
				}
				if r, err = List(ctx, tool.ListFilesArgs{Path: c.path}); err != nil {
					t.Fatal(err)
				}
				for _, e := range r.Entries {
					if e.Type == "file" {
						paths = append(paths, e.Path)
					}
				}
			}
			for _, p := range paths {
				if got, err := read(p); err != nil || strings.TrimSpace(got) != "hit" {
					t.Errorf("%s: %q, %v", p, got, err)
				}
			}
		})
	}
}

// A pattern of another dialect is told as such.
func TestSearchLookaround(t *testing.T) {
	for pattern, want := range map[string]string{
		"(?<=x)y": "no lookbehind: `(?<=x)y`", "(?=x)": "no lookbehind: `(?=`", "(?<!x)": "no lookbehind", "(?<a": "invalid named capture",
	} {
		if _, err := newMatcher(tool.SearchFilesArgs{Pattern: pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
}
