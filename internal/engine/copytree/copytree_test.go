package copytree

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(t *testing.T, data []byte) []string {
	t.Helper()
	var out []string
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name)
	}
}

func copied(t *testing.T, dir string, o Options) ([]string, error) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := Write(w, dir, o); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return names(t, b.Bytes()), nil
}

// B9: a copy has nothing that matches.
func TestCopyLeavesOutWhatMatches(t *testing.T) {
	dir := tree(t, ".env", "a.txt", "keys/id.pem", "sub/.env", "sub/deep/x.pem", "sub/deep/y.txt")
	got, err := copied(t, dir, Options{Exclude: []string{".env", "**/*.pem", "sub/.*"}})
	want := []string{"a.txt", "keys/", "sub/", "sub/deep/", "sub/deep/y.txt"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	got, err = copied(t, dir, Options{Exclude: []string{"sub"}})
	if want := []string{".env", "a.txt", "keys/", "keys/id.pem"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := copied(t, dir, Options{Exclude: []string{"[a"}}); err == nil {
		t.Error("a pattern that can't be read was accepted")
	}
}

func TestCopyDoesNotFollowSymlinks(t *testing.T) {
	outside := tree(t, "secret")
	dir := tree(t, "a.txt")
	for link, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret"), "up": "../.."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := copied(t, dir, Options{})
	if want := []string{"a.txt", "dir", "file", "up"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestCopyIsBounded(t *testing.T) {
	dir := tree(t, "a", "b", "c")
	if _, err := copied(t, dir, Options{MaxFiles: 2}); err == nil || !strings.Contains(err.Error(), "more than 2 files") {
		t.Errorf("files: %v", err)
	}
	if _, err := copied(t, dir, Options{MaxBytes: 2}); err == nil || !strings.Contains(err.Error(), "more than 2B") {
		t.Errorf("bytes: %v", err)
	}
}

func TestCopyRefusesWhatIsNoFile(t *testing.T) {
	dir := tree(t, "a")
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := copied(t, dir, Options{}); err == nil || !strings.Contains(err.Error(), "FIFO") {
		t.Errorf("err = %v", err)
	}
	if _, err := copied(t, filepath.Join(dir, "a"), Options{}); err == nil || !strings.Contains(err.Error(), "it is a file") {
		t.Errorf("a file: %v", err)
	}
}
