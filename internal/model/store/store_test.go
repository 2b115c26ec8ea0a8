package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) (sha string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.gguf"), "GGUF\x03\x00\x00\x00model")
	write(t, filepath.Join(dir, "short.gguf"), "GG")
	write(t, filepath.Join(dir, "other.gguf"), "PK\x03\x04 an archive")
	if err := os.Symlink("a.gguf", filepath.Join(dir, "link.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.gguf"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.gguf", "link.gguf"} {
		m, err := Find(dir, name)
		if err != nil || filepath.Base(m.Path) != "a.gguf" || m.Size != 13 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if _, err := Find(dir, "none.gguf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for _, name := range []string{"short.gguf", "other.gguf"} {
		_, err := Find(dir, name)
		if _, ok := errors.AsType[*NotGGUFError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Find(dir, "dir.gguf"); err == nil {
		t.Error("a directory is a model")
	}
}

// TestVerify: a sum is read once, and again when the file may be another.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	path, sums := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "state", "sums.json")
	first := write(t, path, "GGUF\x03\x00\x00\x00one")
	verify := func(want string) (bytes int, err error) {
		t.Helper()
		m, err := Find(dir, "a.gguf")
		if err != nil {
			t.Fatal(err)
		}
		err = m.Verify(t.Context(), want, sums, func(n int) { bytes += n })
		return bytes, err
	}
	if n, err := verify(first); n != 11 || err != nil {
		t.Errorf("first: %d bytes, %v", n, err)
	}
	if n, err := verify(first); n != 0 || err != nil {
		t.Errorf("again: %d bytes, %v", n, err)
	}
	_, err := verify("00")
	if other, ok := errors.AsType[*HashError](err); !ok || other.Got != first || other.Want != "00" {
		t.Errorf("another: %v", err)
	}
	// Changed, with the size and the time that it had.
	info, _ := os.Stat(path)
	time.Sleep(20 * time.Millisecond)
	write(t, path, "GGUF\x03\x00\x00\x00two")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if n, err := verify(first); n != 11 || err == nil {
		t.Errorf("changed: %d bytes, %v", n, err)
	}
	// A file of sums that is damaged is none.
	for _, damaged := range []string{"{", "null", "[]", `{"` + path + `": null}`, ""} {
		write(t, sums, damaged)
		if n, err := verify(first); n != 11 || err == nil {
			t.Errorf("damaged as %s: %d bytes, %v", damaged, n, err)
		}
	}
	m, _ := Find(dir, "a.gguf")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Verify(ended, first, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
