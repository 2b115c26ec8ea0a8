//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/image/reference"
)

// pinned is a reference with the hash that its files have now.
func pinned(t *testing.T, name string) reference.Ref {
	t.Helper()
	hash, err := ContentHash(t.Context(), ref(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return ref(t, name+"#"+hash)
}

// twoImages are two whose files differ, and their archives not in size.
func twoImages(t *testing.T) (good, evil *testImage) {
	return imageOf(t, plainTar, nil, layerOf(t, file("f", "good"))), imageOf(t, plainTar, nil, layerOf(t, file("f", "evil")))
}

// B46: what is used of an image in files is what was hashed, whatever is written there
// later.
func TestContentIsTheHashedOne(t *testing.T) {
	good, evil := twoImages(t)
	layout := layoutOf(t, good)
	otherIndex, err := os.ReadFile(filepath.Join(layoutOf(t, evil), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	archive := archiveOf(t, nil, map[string]*testImage{"w:1": good})
	otherArchive, err := os.ReadFile(archiveOf(t, nil, map[string]*testImage{"w:1": evil}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ref, want string
		swap            func()
	}{
		{"layout", "oci:" + layout, "its index.json is damaged or was replaced", func() {
			evil.blobsTo(t, layout)
			write(t, filepath.Join(layout, "index.json"), otherIndex)
		}},
		{"archive", "docker-archive:" + archive, "its archive is damaged or was replaced", func() { write(t, archive, otherArchive) }},
		{"one image of an archive", "docker-archive:" + archiveOf(t, nil, map[string]*testImage{"w:1": good, "v:1": evil}) + ":w:1", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, s := pinned(t, c.ref), openStore(t, Options{})
			if img, err := s.Lookup(t.Context(), r); img != nil || err != nil {
				t.Fatalf("before: %v, %v", img, err)
			}
			img, err := s.Get(t.Context(), r, Never, nil)
			if err != nil || img.ID != digestOf(good.config) {
				t.Fatalf("%+v, %v", img, err)
			}
			if c.swap == nil {
				return
			}
			c.swap()
			for _, p := range []Policy{Missing, Never} {
				if again, err := s.Get(t.Context(), r, p, nil); err != nil || again.ID != img.ID {
					t.Errorf("%s: %+v, %v", p, again, err)
				}
			}
			if again, err := s.Lookup(t.Context(), r); err != nil || again == nil || again.ID != img.ID {
				t.Errorf("looked up: %+v, %v", again, err)
			}
			if again, err := s.Get(t.Context(), r, Always, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("always: %+v, %v; want %q", again, err, c.want)
			}
			refused(t, Options{}, r, c.want)
			if err := s.Remove(t.Context(), img.ID); err != nil {
				t.Fatal(err)
			}
			if again, err := s.Lookup(t.Context(), r); again != nil || err != nil {
				t.Errorf("removed: %+v, %v", again, err)
			}
		})
	}
}

// An archive that is written to after it was hashed gives nothing but an error: its layers
// have digests in its configuration, and that is compared.
func TestArchiveChangesAfterItsHash(t *testing.T) {
	good, evil := twoImages(t)
	name := archiveOf(t, nil, map[string]*testImage{"w:1": good})
	r := pinned(t, "docker-archive:"+name)
	other, err := os.ReadFile(archiveOf(t, nil, map[string]*testImage{"w:1": evil}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := openArchive(t.Context(), name, r.Content)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	write(t, name, other) // in place
	f, err := a.resolve(t.Context(), r, runtime.GOARCH, Limits{}.withDefaults())
	if err == nil || !strings.Contains(err.Error(), "of its archive is damaged or was replaced") {
		t.Errorf("%+v, %v", f, err)
	}
}

// Sparse files of a few bytes must not cost the time of large ones.
func TestSparseArchive(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name, data string) {
		w.Flush()
		at := b.Len()
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(data))
		if name != "records" {
			return
		}
		head := b.Bytes()[at : at+512] // the writer refuses records of sparse files
		head[156] = tar.TypeXHeader
		copy(head[148:156], "        ")
		sum := 0
		for _, c := range head {
			sum += int(c)
		}
		copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	}
	record := func(key, value string) string {
		n := len(key) + len(value) + 3
		return fmt.Sprintf("%d %s=%s\n", n+len(strconv.Itoa(n+2)), key, value)
	}
	for i := range 1000 {
		size := strconv.Itoa(maxConfig - i)
		add("records", record("GNU.sparse.size", size)+record("GNU.sparse.numblocks", "1")+record("GNU.sparse.map", "0,1"))
		add("blank", "x")
	}
	add("manifest.json", "[]")
	w.Close()
	name := filepath.Join(t.TempDir(), "sparse.tar")
	write(t, name, b.Bytes())
	refused(t, Options{}, pinned(t, "docker-archive:"+name), "sparse files")
}
