//go:build linux

package image

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/internal/lib/rmtree"
)

func TestGetFromLayout(t *testing.T) {
	for _, how := range []packing{plainTar, gzipped, zstdTar} {
		img := imageOf(t, how, nil,
			layerOf(t, dir("./", 0o755), dir("bin/", 0o555), file("bin/sh", "shell"), link("lib", "usr/lib"), file("etc/passwd", "root"), hard("bin/ash", "bin/sh")),
			layerOf(t, file("bin/more", "more"), file("etc/.wh.passwd", "")),
		)
		s := openStore(t, Options{})
		r := ref(t, "oci:"+layoutOf(t, img))
		if got, err := s.Lookup(t.Context(), r); got != nil || err != nil {
			t.Fatalf("before: %v, %v", got, err)
		}
		var seen, total int64
		got, err := s.Get(t.Context(), r, Never, func(c, n int64, detail string) { seen, total = c, n })
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != digestOf(img.config) || got.Ref != r || got.Size != 13 || got.Config.User != "65532" || got.Config.WorkingDir != "/work" ||
			!slices.Equal(got.Config.Env, []string{"PATH=/bin", "A=1"}) || !slices.Equal(got.Config.Volumes, []string{"/data"}) {
			t.Errorf("%+v", got)
		}
		if seen != total || total == 0 {
			t.Errorf("progress %d of %d", seen, total)
		}
		want := []string{"bin/", "bin/ash: shell", "bin/more: more", "bin/sh: shell", "etc/", "lib -> usr/lib"}
		if have := tree(t, got.RootFS); !slices.Equal(have, want) {
			t.Errorf("%q; want %q", have, want)
		}
		again, err := s.Lookup(t.Context(), r)
		if err != nil || again == nil || again.ID != got.ID || again.RootFS != got.RootFS || again.Size != got.Size || again.Config.User != "65532" {
			t.Errorf("%+v, %v", again, err)
		}
		leftovers(t, s, 1)
		if err := s.Remove(t.Context(), got.ID); err != nil {
			t.Error(err)
		}
		leftovers(t, s, 0)
		if again, err := s.Lookup(t.Context(), r); again != nil || err != nil {
			t.Errorf("after: %v, %v", again, err)
		}
	}
}

// TestMetadata: modes without setuid and setgid, times, owners for root alone,
// and no extended attribute.
func TestMetadata(t *testing.T) {
	set := file("su", "x")
	set.Mode = 0o6755
	set.PAXRecords = map[string]string{"SCHILY.xattr.user.x": "1", "SCHILY.xattr.security.capability": "\x01\x00\x00\x02", "SCHILY.xattr.user.overlay.opaque": "y"}
	closed := file("closed/file", "x")
	closed.Mode = 0
	img := imageOf(t, gzipped, nil, layerOf(t, dir("tmp", 0o7777), set, dir("closed", 0o500), closed, link("l", "/etc")))
	s := openStore(t, Options{})
	got, err := s.Get(t.Context(), ref(t, "oci:"+layoutOf(t, img)), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{
		".": 0o755 | fs.ModeDir, "tmp": 0o777 | fs.ModeDir | fs.ModeSticky, "su": 0o755, "closed": 0o500 | fs.ModeDir, "closed/file": 0,
	} {
		info, err := os.Lstat(filepath.Join(got.RootFS, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
			continue
		}
		st := info.Sys().(*syscall.Stat_t)
		if name != "." && (!info.ModTime().Equal(aTime) || os.Geteuid() == 0 && (st.Uid != 4711 || st.Gid != 4712) || os.Geteuid() != 0 && int(st.Uid) != os.Geteuid()) {
			t.Errorf("%s: %v %d:%d", name, info.ModTime(), st.Uid, st.Gid)
		}
		if n, err := syscall.Listxattr(filepath.Join(got.RootFS, name), make([]byte, 256)); n != 0 {
			t.Errorf("%s: %d bytes of attributes, %v", name, n, err)
		}
	}
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store: %v, %v", info.Mode(), err)
	}
	if err := s.Remove(t.Context(), got.ID); err != nil {
		t.Error(err)
	}
}

// TestTwoAtOnce: one of several unpacks, the others get what it made.
func TestTwoAtOnce(t *testing.T) {
	var entries []*tar.Header
	for i := range 300 {
		entries = append(entries, file("d/"+string(rune('a'+i%26))+"/"+string(rune('0'+i/26)), "x"))
	}
	r := ref(t, "oci:"+layoutOf(t, imageOf(t, gzipped, nil, layerOf(t, entries...))))
	dir := filepath.Join(t.TempDir(), "images")
	var mu sync.Mutex
	unpacked := map[int]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(dir, Options{})
			if err == nil {
				_, err = s.Get(t.Context(), r, "", func(int64, int64, string) { mu.Lock(); unpacked[i] = true; mu.Unlock() })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(unpacked) != 1 {
		t.Errorf("%d unpacked", len(unpacked))
	}
}

// TestHalfIsNeverUsed: without its marker, or with one of another format or
// image, a directory is no image; what was interrupted is removed.
func TestHalfIsNeverUsed(t *testing.T) {
	img := imageOf(t, gzipped, nil, layerOf(t, file("f", "whole")))
	r := ref(t, "oci:"+layoutOf(t, img))
	s := openStore(t, Options{})
	dir := s.imageDir(digestOf(img.config))
	for name, text := range map[string]string{"none": "", "damaged": "{", "format": `{"format":99,"id":"` + digestOf(img.config) + `"}`, "other": `{"format":1,"id":"` + digestOf(nil) + `"}`} {
		rmtree.Remove(dir)
		write(t, filepath.Join(dir, "rootfs", "f"), []byte("half"))
		write(t, filepath.Join(s.dir, "work", filepath.Base(dir), "rootfs", "g"), []byte("half"))
		write(t, filepath.Join(s.dir, "work", "other", "h"), []byte("half"))
		if text != "" {
			write(t, filepath.Join(dir, "image.json"), []byte(text))
		}
		if got, err := s.Lookup(t.Context(), r); got != nil || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		got, err := s.Get(t.Context(), r, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if have := tree(t, got.RootFS); !slices.Equal(have, []string{"f: whole"}) {
			t.Errorf("%s: %q", name, have)
		}
		leftovers(t, s, 1)
	}
}

// TestStoreOfOthers: a directory that others may write to is no store.
func TestStoreOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("no error")
	}
}
