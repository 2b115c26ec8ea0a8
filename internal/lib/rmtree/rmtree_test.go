package rmtree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRemove: directories that are closed, and names that are no text, are no
// hindrance; links go, and what they lead to stays.
func TestRemove(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	dir := filepath.Join(t.TempDir(), "tree")
	for _, d := range []string{outside, dir + "/a/b/c", dir + "/\xff\xfe/deep"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{outside + "/kept", dir + "/a/file", dir + "/a/b/c/file", dir + "/\xff\xfe/deep/file"} {
		if err := os.WriteFile(f, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink(outside, dir+"/a/b/link"), os.Symlink("/", dir+"/a/b/c/root"), os.Chmod(dir+"/\xff\xfe/deep", 0), os.Chmod(dir+"/\xff\xfe", 0),
		os.Chmod(dir+"/a/b/c", 0), os.Chmod(dir+"/a/b", 0o111), os.Chmod(dir+"/a", 0o555), os.Chmod(dir, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(err, info)
	}
	if _, err := os.Stat(outside + "/kept"); err != nil {
		t.Error(err)
	}
	// What isn't there, and a link.
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outside + "/kept"); err != nil {
		t.Error(err)
	}
}

// Commands that remove one directory at once all find it gone.
func TestSeveralAtOnce(t *testing.T) {
	for range 40 {
		dir := filepath.Join(t.TempDir(), "tree")
		for _, name := range []string{"a", "b/c", "b/d", "e/f/g"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"1", "2", "3", "4", "5", "6"} {
				if err := os.WriteFile(filepath.Join(dir, name, file), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		const commands = 4
		ended := make(chan error, commands)
		for range commands {
			go func() { ended <- Remove(dir) }()
		}
		for range commands {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}
