//go:build linux

package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSameEverywhere: an image is the same tree wherever it is unpacked, also in the times
// of directories that it has no entry for.
func TestSameEverywhere(t *testing.T) {
	s := openStore(t, Options{})
	img, err := s.Get(t.Context(), ref(t, "oci:"+layoutOf(t, imageOf(t, plainTar, nil, layerOf(t, file("a/b/file", "x")), layerOf(t, file("a/b/more", "x"))))), Never, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Time{".": epoch, "a": epoch, "a/b": epoch, "a/b/file": aTime} {
		if info, err := os.Stat(filepath.Join(img.RootFS, name)); err != nil || !info.ModTime().Equal(want) {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
}

// TestBeside: a file that is made of an image is made once, whole, and removed with it.
func TestBeside(t *testing.T) {
	layout := layoutOf(t, imageOf(t, plainTar, nil, layerOf(t, file("a/b/file", "x"))))
	s := openStore(t, Options{})
	img, err := s.Get(t.Context(), ref(t, "oci:"+layout), Never, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := s.Beside(t.Context(), img, "made", func(f *os.File) error { f.WriteString("half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error", err)
	}
	// A process that was killed leaves one that is half done.
	if err := os.WriteFile(filepath.Join(filepath.Dir(img.RootFS), "made.unfinished"), []byte("half of another"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			file, err := s.Beside(t.Context(), img, "made", func(f *os.File) error {
				made.Add(1)
				_, err := f.WriteString("whole")
				return err
			})
			if data, err2 := os.ReadFile(file); err != nil || string(data) != "whole" {
				t.Errorf("%q, %v, %v", data, err, err2)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("it was made %d times", made.Load())
	}
	list, err := filepath.Glob(filepath.Join(filepath.Dir(img.RootFS), "made*"))
	if err != nil || len(list) != 1 {
		t.Errorf("there are %q, %v", list, err)
	}
	if err := s.Remove(t.Context(), img.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Beside(t.Context(), img, "made", func(*os.File) error { return nil })
	if _, err2 := os.Lstat(filepath.Dir(img.RootFS)); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err2, fs.ErrNotExist) {
		t.Errorf("of an image that was removed: %v, %v", err, err2)
	}
}
