package root

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// layer is a layer of files with their names as content.
func layer(t *testing.T, names ...string) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{Name: name, Mode: 0o755, Uid: 1234, Gid: 4321, ModTime: time.Unix(1_700_000_000, 0)}
		switch {
		case strings.HasSuffix(name, "/"):
			h.Typeflag = tar.TypeDir
		case strings.Contains(name, ".wh."):
			h.Typeflag = tar.TypeReg
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(name))
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02", "SCHILY.xattr.user.a": "x"}
			h.Mode = 0o4755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			io.WriteString(w, name)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestOfAnImage: the layers of an image are one root in the guest, the same in each store.
func TestOfAnImage(t *testing.T) {
	made, err := mutate.AppendLayers(empty.Image,
		layer(t, "bin/", "bin/kept", "bin/gone", "opaque/", "opaque/below", "whole/dir/file"),
		layer(t, "bin/.wh.gone", "opaque/.wh..wh..opq", "opaque/above", ".wh.whole", "new"))
	if err == nil {
		made, err = mutate.ConfigFile(made, func() *v1.ConfigFile {
			c, err := made.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			c.OS, c.Architecture = "linux", "amd64"
			return c
		}())
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	oci, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = oci.AppendImage(made)
	}
	if err != nil {
		t.Fatal(err)
	}
	ref, err := reference.Parse("oci:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	var images [][]byte
	var file string
	var rootfs string
	for range 2 {
		store := filepath.Join(t.TempDir(), "images")
		t.Cleanup(func() { rmtree.Remove(store) })
		s, err := image.Open(store, image.Options{Arch: "amd64"})
		if err != nil {
			t.Fatal(err)
		}
		img, err := s.Get(t.Context(), ref, image.Never, nil)
		if err != nil {
			t.Fatal(err)
		}
		rootfs = img.RootFS
		if file, err = Of(t.Context(), s, img); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, data)
		time.Sleep(10 * time.Millisecond) // another time
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Errorf("two stores have images of %d and %d bytes, which differ", len(images[0]), len(images[1]))
	}
	got := list(t, mountImage(t, file))
	if diff := gocmp.Diff(list(t, rootfs), got); diff != "" {
		t.Errorf("-store +image:\n%s", diff)
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"", "/bin", "/bin/kept", "/new", "/opaque", "/opaque/above"}) {
		t.Errorf("it has %q", names)
	}
	if e := got["/bin/kept"]; e.Mode != 0o755 || e.Data != "bin/kept" || os.Geteuid() == 0 && (e.UID != 1234 || e.GID != 4321) {
		t.Errorf("a file is %+v", e)
	}
}
