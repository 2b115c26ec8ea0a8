//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

var aTime = time.Unix(1_700_000_000, 0)

// Entries of a layer.
func file(name, data string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, ModTime: aTime, Size: int64(len(data)), Linkname: data}
}

func dir(name string, mode int64) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: mode, ModTime: aTime}
}

func link(name, to string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: to, ModTime: aTime}
}

func hard(name, to string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeLink, Mode: 0o644, Linkname: to, ModTime: aTime}
}

func special(name string, kind byte) *tar.Header {
	return &tar.Header{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: 1, Devminor: 3, ModTime: aTime}
}

// layerOf packs entries; what file put into Linkname is its content.
func layerOf(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		c, data := *h, ""
		if c.Typeflag == tar.TypeReg {
			data, c.Linkname = c.Linkname, ""
		}
		if os.Geteuid() == 0 && c.Uid == 0 && c.Typeflag != tar.TypeXGlobalHeader {
			c.Uid, c.Gid = 4711, 4712
		}
		if err := w.WriteHeader(&c); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// testImage is an image before it is written somewhere.
type testImage struct {
	config   []byte
	layers   [][]byte // as stored
	diffIDs  []string
	types    []string
	manifest []byte
}

type packing string

const (
	plainTar packing = ""
	gzipped  packing = "+gzip"
	zstdTar  packing = "+zstd"
)

func pack(t testing.TB, how packing, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch how {
	case gzipped:
		w := gzip.NewWriter(&b)
		w.Write(data)
		w.Close()
	case zstdTar:
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
		w.Close()
	default:
		return data
	}
	return b.Bytes()
}

// imageOf makes an image of layers. change may alter its configuration.
func imageOf(t testing.TB, how packing, change func(map[string]any), layers ...[]byte) *testImage {
	t.Helper()
	img := &testImage{}
	for _, l := range layers {
		img.layers = append(img.layers, pack(t, how, l))
		img.diffIDs = append(img.diffIDs, digestOf(l))
		img.types = append(img.types, "application/vnd.oci.image.layer.v1.tar"+string(how))
	}
	config := map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Env": []string{"PATH=/bin", "A=1"}, "WorkingDir": "/work", "User": "65532", "Volumes": map[string]any{"/data": map[string]any{}}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": img.diffIDs},
	}
	if change != nil {
		change(config)
	}
	img.config = marshal(t, config)
	img.seal(t)
	return img
}

// seal makes the manifest anew.
func (img *testImage) seal(t testing.TB) {
	m := map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": configTypes[0], "digest": digestOf(img.config), "size": len(img.config)},
	}
	var list []any
	for i, l := range img.layers {
		list = append(list, map[string]any{"mediaType": img.types[i], "digest": digestOf(l), "size": len(l)})
	}
	m["layers"] = list
	img.manifest = marshal(t, m)
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func blobFile(dir, digest string) string {
	return filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
}

// entryOf describes an image in an index.
func (img *testImage) entryOf(tag, arch string) map[string]any {
	d := map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digestOf(img.manifest), "size": len(img.manifest)}
	if tag != "" {
		d["annotations"] = map[string]string{refName: tag}
	}
	if arch != "" {
		d["platform"] = map[string]string{"os": "linux", "architecture": arch}
	}
	return d
}

func (img *testImage) blobsTo(t testing.TB, dir string) {
	for _, b := range append(slices.Clone(img.layers), img.config, img.manifest) {
		write(t, blobFile(dir, digestOf(b)), b)
	}
}

// layoutOf writes an image layout with one image.
func layoutOf(t testing.TB, img *testImage) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	img.blobsTo(t, dir)
	write(t, filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`))
	write(t, filepath.Join(dir, "index.json"), marshal(t, map[string]any{"schemaVersion": 2, "manifests": []any{img.entryOf("", "")}}))
	return dir
}

func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "images"), o)
	if err != nil {
		t.Fatal(err)
	}
	// TempDir can't remove what its owner may not write to.
	t.Cleanup(func() { rmtree.Remove(s.dir) })
	return s
}

func ref(t testing.TB, s string) reference.Ref {
	t.Helper()
	r, err := reference.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree lists what is in a directory: "name mode", "name -> target", "name: content".
func tree(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name, _ := filepath.Rel(root, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out = append(out, fmt.Sprintf("%s/", name))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			out = append(out, name+" -> "+to)
		default:
			data, _ := os.ReadFile(p)
			out = append(out, name+": "+string(data))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// leftovers fails if the store has anything but whole images.
func leftovers(t testing.TB, s *Store, images int) {
	t.Helper()
	work, err := os.ReadDir(filepath.Join(s.dir, "work"))
	if err != nil || len(work) != 0 {
		t.Errorf("left in work: %v, %v", work, err)
	}
	list, err := s.List()
	if err != nil || len(list) != images {
		t.Errorf("%d images, %v; want %d", len(list), err, images)
	}
}
