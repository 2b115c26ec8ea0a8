//go:build linux

package files

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

var ctx = context.Background()

// wantErr tells whether an error says what it should; "" wants none.
func wantErr(t *testing.T, err error, want string) bool {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
		return false
	}
	return true
}

func TestRead(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{
		"three": "one\ntwo\nthree\n", "open": "one\ntwo", "empty": "", "crlf": "a\r\nb\r\n", "mark": "\uFEFFa\n", "nul": "a\x00b", "latin": "caf\xe9\n",
		"mixed": "text\ncaf\xe9\n", "long": strings.Repeat("é", 3000) + "\nend\n", "blank": "\n\n\n", "dir/": "", "wide": strings.Repeat("x", chunk) + strings.Repeat("y", chunk) + "\nlast",
	})
	if err := os.Symlink("three", "link"); err != nil {
		t.Fatal(err)
	}
	type result = tool.ReadFileResult
	for _, c := range []struct {
		args tool.ReadFileArgs
		want result
		err  string
	}{
		{args: tool.ReadFileArgs{Path: "three"}, want: result{Content: "one\ntwo\nthree\n", FirstLine: 1, Lines: 3, Size: 14}},
		{args: tool.ReadFileArgs{Path: "link"}, want: result{Content: "one\ntwo\nthree\n", FirstLine: 1, Lines: 3, Size: 14}},
		{args: tool.ReadFileArgs{Path: "./dir/../three", FirstLine: 2, MaxLines: 1}, want: result{Content: "two\n", FirstLine: 2, Lines: 1, Size: 14, Truncated: true, NextLine: 3}},
		{args: tool.ReadFileArgs{Path: "three", FirstLine: 3, MaxLines: 1}, want: result{Content: "three\n", FirstLine: 3, Lines: 1, Size: 14}},
		{args: tool.ReadFileArgs{Path: "three", FirstLine: 4}, err: "three has 3 lines, but first_line is 4"},
		{args: tool.ReadFileArgs{Path: "three", MaxBytes: 8}, want: result{Content: "one\ntwo\n", FirstLine: 1, Lines: 2, Size: 14, Truncated: true, NextLine: 3}},
		{args: tool.ReadFileArgs{Path: "three", MaxBytes: 9}, want: result{Content: "one\ntwo\n", FirstLine: 1, Lines: 2, Size: 14, Truncated: true, NextLine: 3}},
		{args: tool.ReadFileArgs{Path: "three", MaxBytes: 14}, want: result{Content: "one\ntwo\nthree\n", FirstLine: 1, Lines: 3, Size: 14}},
		{args: tool.ReadFileArgs{Path: "open"}, want: result{Content: "one\ntwo", FirstLine: 1, Lines: 2, Size: 7}},
		{args: tool.ReadFileArgs{Path: "open", FirstLine: 2}, want: result{Content: "two", FirstLine: 2, Lines: 1, Size: 7}},
		{args: tool.ReadFileArgs{Path: "open", FirstLine: 3}, err: "open has 2 lines"},
		{args: tool.ReadFileArgs{Path: "empty"}, want: result{}},
		{args: tool.ReadFileArgs{Path: "empty", FirstLine: 2}, err: "empty has 0 lines"},
		{args: tool.ReadFileArgs{Path: "blank", FirstLine: 2, MaxLines: 1}, want: result{Content: "\n", FirstLine: 2, Lines: 1, Size: 3, Truncated: true, NextLine: 3}},
		{args: tool.ReadFileArgs{Path: "crlf"}, want: result{Content: "a\r\nb\r\n", FirstLine: 1, Lines: 2, Size: 6}},
		{args: tool.ReadFileArgs{Path: "mark"}, want: result{Content: "\uFEFFa\n", FirstLine: 1, Lines: 1, Size: 5}},
		{args: tool.ReadFileArgs{Path: "long", MaxBytes: 11}, want: result{Content: "ééééé", FirstLine: 1, Lines: 1, Size: 6005, Truncated: true, NextLine: 2, Note: "line 1 is longer than max_bytes and is cut; with binary, it goes on at offset 10; the next line is first_line 2"}},
		{args: tool.ReadFileArgs{Path: "three", FirstLine: 3, MaxBytes: 2}, want: result{Content: "th", FirstLine: 3, Lines: 1, Size: 14, Truncated: true, Note: "line 3 is longer than max_bytes and is cut; with binary, it goes on at offset 10"}},
		{args: tool.ReadFileArgs{Path: "long", FirstLine: 2}, want: result{Content: "end\n", FirstLine: 2, Lines: 1, Size: 6005}},
		{args: tool.ReadFileArgs{Path: "wide", FirstLine: 2}, want: result{Content: "last", FirstLine: 2, Lines: 1, Size: 2*chunk + 5}},
		{args: tool.ReadFileArgs{Path: "nul"}, err: "nul is a binary file of 3 bytes; to read its bytes as base64, set binary: true"},
		{args: tool.ReadFileArgs{Path: "latin"}, err: "binary: true"},
		{args: tool.ReadFileArgs{Path: "mixed", MaxLines: 1}, want: result{Content: "text\n", FirstLine: 1, Lines: 1, Size: 10, Truncated: true, NextLine: 2}},
		{args: tool.ReadFileArgs{Path: "nul", Binary: true}, want: result{Content: "YQBi", Binary: true, Size: 3}},
		{args: tool.ReadFileArgs{Path: "three", Binary: true, Offset: 4, MaxBytes: 3}, want: result{Content: "dHdv", Binary: true, Size: 14, Truncated: true}},
		{args: tool.ReadFileArgs{Path: "three", Binary: true, Offset: 100}, want: result{Binary: true, Size: 14}},
		{args: tool.ReadFileArgs{Path: "dir"}, err: "dir is a directory"},
		{args: tool.ReadFileArgs{Path: "none"}, err: "none: no such file or directory"},
		{args: tool.ReadFileArgs{Path: "three/x"}, err: "not a directory"},
		{args: tool.ReadFileArgs{Path: ""}, err: "path is empty"},
		{args: tool.ReadFileArgs{Path: "a\x00"}, err: "zero byte"},
		{args: tool.ReadFileArgs{Path: "three", Offset: 1}, err: "offset counts bytes"},
		{args: tool.ReadFileArgs{Path: "three", Binary: true, FirstLine: 1}, err: "count lines"},
		{args: tool.ReadFileArgs{Path: "three", FirstLine: -1}, err: "0 or more"},
		{args: tool.ReadFileArgs{Path: "three", MaxBytes: tool.MaxReadBytes + 1}, err: "max_bytes is 4194305, want 1 to 4194304"},
	} {
		r, err := Read(ctx, c.args)
		if !wantErr(t, err, c.err) || err != nil {
			continue
		}
		c.want.Path = c.args.Path
		if diff := cmp.Diff(&c.want, r); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", c.args, diff)
		}
	}
}

// TestReadSparse: the beginning of a file costs the same whatever its size is.
func TestReadSparse(t *testing.T) {
	p := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(p, []byte("first\nsecond\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(p, 1<<42); err != nil {
		t.Fatal(err)
	}
	r, err := Read(ctx, tool.ReadFileArgs{Path: p, MaxLines: 2})
	if err != nil || r.Content != "first\nsecond\n" || r.Size != 1<<42 || r.NextLine != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = Read(ctx, tool.ReadFileArgs{Path: p, FirstLine: 3}); err == nil || !strings.Contains(err.Error(), "binary: true") {
		t.Error(err)
	}
	if r, err = Read(ctx, tool.ReadFileArgs{Path: p, Binary: true, Offset: 1<<42 - 2}); err != nil || r.Content != base64.StdEncoding.EncodeToString([]byte{0, 0}) {
		t.Errorf("%+v, %v", r, err)
	}
	// Looking for a line that never comes ends with the call.
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := Read(short, tool.ReadFileArgs{Path: p, FirstLine: 1000}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestNoFile: what isn't a regular file is refused by every tool, at once and
// without an effect on it.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := unix.Mkfifo("fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for link, to := range map[string]string{"mem": "/proc/self/mem", "proc": "/proc", "null": "/dev/null", "loop": "loop", "tofifo": "fifo", "fd": fmt.Sprintf("/proc/self/fd/%d", 0)} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	proc := "closed to the file tools"
	for path, want := range map[string]string{
		"fifo": "is a FIFO", "tofifo": "is a FIFO", "sock": "is a socket", "/dev/zero": "is a device", "null": "is a device", "loop": "too many symbolic links", ".": "is a directory", "..": "is a directory",
		"/proc/self/mem": proc, "mem": proc, "proc/self/mem": proc, "/proc/1/cmdline": proc, "/proc/thread-self/environ": proc, "/proc/self/root/proc/self/maps": proc,
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := Read(ctx, tool.ReadFileArgs{Path: path})
			wantErr(t, err, want)
			_, err = Write(ctx, tool.WriteFileArgs{Path: path, Content: "x"})
			wantErr(t, err, want)
			_, err = Edit(ctx, tool.EditFileArgs{Path: path, OldString: "a", NewString: "b"})
			wantErr(t, err, want)
			if _, err = Search(ctx, tool.SearchFilesArgs{Path: path, Pattern: "x"}); want != "is a directory" {
				wantErr(t, err, want)
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", path)
		}
	}
	for _, path := range []string{"/proc", "/proc/self/fd", "proc/self"} {
		_, err := List(ctx, tool.ListFilesArgs{Path: path})
		wantErr(t, err, proc)
		_, err = Search(ctx, tool.SearchFilesArgs{Path: path, Pattern: "x"})
		wantErr(t, err, proc)
	}
	if _, err := Write(ctx, tool.WriteFileArgs{Path: "/proc/self/new", Content: "x"}); err == nil || !strings.Contains(err.Error(), proc) {
		t.Error(err)
	}
	// In a walk they are passed over.
	r, err := Search(ctx, tool.SearchFilesArgs{Pattern: "."})
	if err != nil || r.FilesSearched != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzRead: whatever is asked of a file, the answer holds what it says.
func FuzzRead(f *testing.F) {
	p := filepath.Join(f.TempDir(), "f")
	f.Add([]byte("a\nb\r\nc"), 1, 0, int64(0), 10, false)
	f.Add([]byte("a\x00\n\xff"), 2, 1, int64(3), 0, true)
	f.Fuzz(func(t *testing.T, content []byte, first, lines int, offset int64, most int, binary bool) {
		if err := os.WriteFile(p, content, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Read(ctx, tool.ReadFileArgs{Path: p, FirstLine: first, MaxLines: lines, Offset: offset, MaxBytes: most, Binary: binary})
		if err != nil {
			return
		}
		if most == 0 {
			most = tool.DefaultReadBytes
		}
		if binary {
			b, err := base64.StdEncoding.DecodeString(r.Content)
			from := min(offset, int64(len(content)))
			if err != nil || string(b) != string(content[from:min(len(content), int(from)+most)]) {
				t.Errorf("%q from %d, %d: %q", content, offset, most, b)
			}
			return
		}
		if len(r.Content) > most || !utf8.ValidString(r.Content) || !strings.Contains(string(content), r.Content) || lines > 0 && r.Lines > lines {
			t.Errorf("%q: %+v", content, r)
		}
		if r.Note == "" && r.Truncated {
			if next, err := Read(ctx, tool.ReadFileArgs{Path: p, FirstLine: r.NextLine, MaxBytes: most}); err == nil && !strings.Contains(string(content), r.Content+next.Content) {
				t.Errorf("%q: %q goes on with %q", content, r.Content, next.Content)
			}
		}
	})
}

// What the session itself has open is no file of the worker.
func TestOpenFilesOfTheSession(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := strconv.Itoa(int(f.Fd()))
	for _, path := range []string{"/dev/fd/" + fd, "/proc/self/fd/" + fd, "/proc/thread-self/fd/" + fd} {
		if _, err := Read(t.Context(), tool.ReadFileArgs{Path: path}); err == nil || !strings.Contains(err.Error(), "closed to the file tools") {
			t.Errorf("read %s: %v", path, err)
		}
		if _, err := Write(t.Context(), tool.WriteFileArgs{Path: path, Content: "x"}); err == nil || !strings.Contains(err.Error(), "closed to the file tools") {
			t.Errorf("write %s: %v", path, err)
		}
		if _, err := Edit(t.Context(), tool.EditFileArgs{Path: path, OldString: "a", NewString: "x"}); err == nil || !strings.Contains(err.Error(), "closed to the file tools") {
			t.Errorf("edit %s: %v", path, err)
		}
	}
	if _, err := Read(t.Context(), tool.ReadFileArgs{Path: f.Name()}); err != nil {
		t.Errorf("by its own name: %v", err)
	}
}
