package copytree

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

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
	return testutil.TarNames(t, b.Bytes()), nil
}

// B9: a copy has nothing that matches.
func TestCopyLeavesOutWhatMatches(t *testing.T) {
	dir := testutil.Tree(t, ".env", "a.txt", "keys/id.pem", "sub/.env", "sub/deep/x.pem", "sub/deep/y.txt")
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
	outside := testutil.Tree(t, "secret")
	dir := testutil.Tree(t, "a.txt")
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
	dir := testutil.Tree(t, "a", "b", "c")
	if _, err := copied(t, dir, Options{MaxFiles: 2}); err == nil || !strings.Contains(err.Error(), "more than 2 files") {
		t.Errorf("files: %v", err)
	}
	if _, err := copied(t, dir, Options{MaxBytes: 2}); err == nil || !strings.Contains(err.Error(), "more than 2B") {
		t.Errorf("bytes: %v", err)
	}
}

func TestCopyRefusesWhatIsNoFile(t *testing.T) {
	dir := testutil.Tree(t, "a")
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := copied(t, dir, Options{}); err == nil || !strings.Contains(err.Error(), "FIFO") {
		t.Errorf("err = %v", err)
	}
	if _, err := copied(t, filepath.Join(dir, "a"), Options{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file: %v", err)
	}
}
