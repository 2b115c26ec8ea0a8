package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

func write(t *testing.T, w *Writer, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := w.Write(time.Unix(int64(i), 0), Stdout, fmt.Appendf(nil, "line %d\n", i)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			flush(t, w)
		}
	}
	flush(t, w)
}

func flush(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Read(context.Background(), dir, o, func(e Entry) error { b.WriteString(e.Text); return nil }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func want(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := Open(dir, 700, 3)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 0, 100)
	list, err := numbers(dir)
	if err != nil || len(list) != 3 || list[0] < 5 {
		t.Fatalf("files %v, %v", list, err)
	}
	for _, n := range list {
		info, err := os.Stat(fileName(dir, n))
		if err != nil || info.Size() > 700 || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	all := read(t, dir, Options{Tail: All})
	if all != want(100-strings.Count(all, "\n"), 100) || strings.Count(all, "\n") < 20 {
		t.Errorf("kept: %q", all)
	}
	for _, n := range []int{0, 1, 2, 9, 10, 11, 15, 19} {
		if got := read(t, dir, Options{Tail: n}); got != want(100-n, 100) {
			t.Errorf("the last %d: %q", n, got)
		}
	}
	if got := read(t, dir, Options{Tail: 10000}); got != all {
		t.Errorf("more than there are: %q", got)
	}
	if got := read(t, dir, Options{Tail: All, Since: time.Unix(95, 0)}); got != want(95, 100) {
		t.Errorf("since: %q", got)
	}
	if got := read(t, dir, Options{Tail: 2, Since: time.Unix(95, 0)}); got != want(98, 100) {
		t.Errorf("since and tail: %q", got)
	}
	// A line that is larger than a file has one to itself.
	if _, err := w.Write(time.Unix(1, 0), Stderr, bytes.Repeat([]byte("x"), 1000)); err != nil {
		t.Fatal(err)
	}
	write(t, w, 100, 101)
	if got := read(t, dir, Options{Tail: 2}); got != strings.Repeat("x", 1000)+"line 100\n" {
		t.Errorf("a long line: %q", got)
	}
}

// TestHalfALine: what a killed supervisor leaves.
func TestHalfALine(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, 1<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 0, 2)
	f, err := os.OpenFile(fileName(dir, 1), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"time":"2026-11-22T0`)
	if got := read(t, dir, Options{Tail: All}); got != want(0, 2) {
		t.Errorf("before: %q", got)
	}
	if w, err = Open(dir, 1<<20, 2); err != nil {
		t.Fatal(err)
	}
	write(t, w, 2, 4)
	if got := read(t, dir, Options{Tail: All}); got != want(0, 4) {
		t.Errorf("after: %q", got)
	}
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, 2000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 0, 50)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	var b strings.Builder
	ended := make(chan error, 1)
	go func() {
		ended <- Read(ctx, dir, Options{Tail: 3, Follow: true}, func(e Entry) error {
			mu.Lock()
			defer mu.Unlock()
			b.WriteString(e.Text)
			return nil
		})
	}()
	for i := 50; i < 2000; i += 50 {
		if i == 1000 { // the container is started again, or the supervisor
			w.Close()
			if w, err = Open(dir, 2000, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if i%500 == 0 {
			time.Sleep(2 * every)
		}
		write(t, w, i, i+50)
	}
	text := func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
	testutil.Eventually(t, "the last line", func() bool { return strings.HasSuffix(text(), "line 1999\n") })
	got := text() // depending on when it began
	n := strings.Count(got, "\n")
	if got != want(2000-n, 2000) || n < 1500 {
		t.Errorf("%d lines: %.200q", n, got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || ctx.Err() != nil {
		t.Errorf("a log that is removed: %v, %v", err, ctx.Err())
	}
}

func TestNoLog(t *testing.T) {
	err := Read(context.Background(), filepath.Join(t.TempDir(), "none"), Options{Tail: All}, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir(), 0, 3); err == nil {
		t.Error("a log of nothing")
	}
}

// FuzzRead: whatever stands in the files, and whatever was printed.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"time\":\"2026-11-22T06:00:00Z\",\"stream\":\"stdout\",\"text\":\"a\\n\"}\n{"), []byte("\xff\x00\u2028\"\\\n"), 3)
	f.Fuzz(func(t *testing.T, file, text []byte, tail int) {
		dir := t.TempDir()
		if err := os.WriteFile(fileName(dir, 1), file, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = Read(context.Background(), dir, Options{Tail: tail}, func(Entry) error { return nil })
		w, err := Open(dir, 1<<30, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		text = text[:min(len(text), MaxText)]
		at := time.Now()
		if _, err := w.Write(at, Stderr, text); err != nil {
			t.Fatal(err)
		}
		flush(t, w)
		var got []Entry
		if err := Read(context.Background(), dir, Options{Tail: 1}, func(e Entry) error { got = append(got, e); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].Text != string([]rune(string(text))) || !got[0].Time.Equal(at) || got[0].Stream != Stderr {
			t.Fatalf("%q: %q", text, got)
		}
	})
}
