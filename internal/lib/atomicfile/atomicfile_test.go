package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, want := range []struct {
		text string
		mode os.FileMode
	}{{"one", 0o600}, {"another one", 0o444}, {"", 0o666}} { // no umask, and a file that nobody may write
		if err := Write(name, []byte(want.text), want.mode); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		info, e := os.Stat(name)
		if err = errors.Join(err, e); err != nil || string(b) != want.text {
			t.Fatalf("%q %v", b, err)
		}
		if runtime.GOOS != "windows" && info.Mode() != want.mode {
			t.Errorf("%v, want %v", info.Mode(), want.mode)
		}
	}
	only(t, dir, "file")
}

// TestWriteFails: what goes wrong leaves the old file, and nothing beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := Write(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	if err := (File{Name: name, Data: []byte("new"), Mode: 0o600, Prepare: func(*os.File) error { return refused }}).Write(); !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "taken"), []byte("new"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Write(filepath.Join(dir, "missing", "file"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "old" {
		t.Errorf("%q %v", b, err)
	}
	only(t, dir, "file", "taken")
}

// TestReadersSeeWholeFiles: whoever reads while others write gets one of theirs.
func TestReadersSeeWholeFiles(t *testing.T) {
	dir := t.TempDir()
	temp := t.TempDir()
	name := filepath.Join(dir, "file")
	content := func(c byte) []byte { return bytes.Repeat([]byte{c}, 64<<10) }
	if err := Write(name, content('a'), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, c := range []byte("bcd") {
		writers.Go(func() {
			for range 50 {
				if err := (File{Name: name, Data: content(c), Mode: 0o600, Temp: temp}).Write(); err != nil {
					t.Error(err)
				}
				list, err := os.ReadDir(dir)
				if err != nil || len(list) != 1 {
					t.Errorf("%v beside it, %v", list, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		if b, err := os.ReadFile(name); err != nil || len(b) == 0 || !bytes.Equal(b, content(b[0])) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	only(t, temp)
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != len(want) {
		t.Fatalf("%v, %v; want %v", list, err, want)
	}
	for i, e := range list {
		if e.Name() != want[i] {
			t.Errorf("%s, want %s", e.Name(), want[i])
		}
	}
}
