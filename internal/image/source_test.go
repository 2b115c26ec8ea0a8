//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// refused expects an error, and nothing in the store.
func refused(t *testing.T, o Options, r reference.Ref, want string) {
	t.Helper()
	s := openStore(t, o)
	img, err := s.Get(t.Context(), r, "", nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v, %v; want %q", img, err, want)
	}
	leftovers(t, s, 0)
}

// TestExchanged: each blob must be the one that was asked for.
func TestExchanged(t *testing.T) {
	for _, how := range []packing{plainTar, gzipped, zstdTar} {
		layers := [][]byte{layerOf(t, file("a", "1")), layerOf(t, file("b", "2"))}
		evil := layerOf(t, file("a", "3"))
		for name, c := range map[string]struct {
			change func(img *testImage, dir string)
			want   string
		}{
			"manifest": {func(img *testImage, dir string) {
				write(t, blobFile(dir, digestOf(img.manifest)), bytes.Replace(img.manifest, []byte("2"), []byte("3"), 1))
			}, "is damaged or was replaced"},
			"configuration": {func(img *testImage, dir string) {
				write(t, blobFile(dir, digestOf(img.config)), bytes.Replace(img.config, []byte("65532"), []byte("00000"), 1))
			}, "is damaged or was replaced"},
			"layer": {func(img *testImage, dir string) {
				other := pack(t, how, evil)
				// Of the same size, so that only the digest tells.
				data := slices.Clone(img.layers[0])
				if len(other) == len(data) {
					data = other
				} else {
					data[len(data)-1] ^= 1
				}
				write(t, blobFile(dir, digestOf(img.layers[0])), data)
			}, "layer 1"},
			"longer layer": {func(img *testImage, dir string) {
				write(t, blobFile(dir, digestOf(img.layers[1])), append(slices.Clone(img.layers[1]), 0))
			}, "is longer than"},
			"shorter layer": {func(img *testImage, dir string) {
				write(t, blobFile(dir, digestOf(img.layers[1])), img.layers[1][:len(img.layers[1])-1])
			}, "layer 2 ends after"},
			"no layer": {func(img *testImage, dir string) { os.Remove(blobFile(dir, digestOf(img.layers[1]))) }, "lacks the blob"},
			"a link": {func(img *testImage, dir string) {
				f := blobFile(dir, digestOf(img.layers[1]))
				moved := filepath.Join(t.TempDir(), "moved")
				if err := os.Rename(f, moved); err != nil {
					t.Fatal(err)
				}
				os.Symlink(moved, f)
			}, "escapes"},
			"a FIFO": {func(img *testImage, dir string) {
				f := blobFile(dir, digestOf(img.layers[1]))
				os.Remove(f)
				unix.Mkfifo(f, 0o600)
			}, "is not a regular file"},
		} {
			t.Run(name+string(how), func(t *testing.T) {
				img := imageOf(t, how, nil, layers...)
				dir := layoutOf(t, img)
				c.change(img, dir)
				refused(t, Options{}, ref(t, "oci:"+dir), c.want)
			})
		}
		// The layer is what the manifest says, and not what the configuration says.
		wrong := imageOf(t, how, func(c map[string]any) {
			c["rootfs"] = map[string]any{"diff_ids": []string{digestOf(layers[0]), digestOf(evil)}}
		}, layers...)
		refused(t, Options{}, ref(t, "oci:"+layoutOf(t, wrong)), "layer 2 unpacked is damaged or was replaced")
	}
}

// TestHostileDocuments: manifests and configurations that no image has.
func TestHostileDocuments(t *testing.T) {
	l := layerOf(t, file("a", "1"))
	set := func(key string, v any) func(map[string]any) { return func(c map[string]any) { c[key] = v } }
	many := make([]string, 300)
	for i := range many {
		many[i] = digestOf(l)
	}
	for name, c := range map[string]struct {
		config func(map[string]any)
		seal   func(*testImage)
		want   string
	}{
		"other architecture": {set("architecture", "riscv64"), nil, `not available for linux/` + runtime.GOARCH + `, only for "linux/riscv64"`},
		"other system":       {set("os", "windows"), nil, `only for "windows/`},
		"no JSON":            {nil, func(i *testImage) { i.config = []byte("{"); i.seal(t) }, "configuration is damaged"},
		"wrong types":        {set("config", map[string]any{"Env": "x"}), nil, "configuration is damaged"},
		"a bad variable":     {set("config", map[string]any{"Env": []string{"=x"}}), nil, "invalid variable"},
		"a zero byte":        {set("config", map[string]any{"User": "a\x00b"}), nil, "zero byte"},
		"a long text":        {set("config", map[string]any{"WorkingDir": strings.Repeat("a", 40000)}), nil, "too long"},
		"many variables":     {set("config", map[string]any{"Env": slices.Repeat([]string{"A=1"}, 1001)}), nil, "more than 1000"},
		"a large one":        {set("x", strings.Repeat("a", 9<<20)), nil, "are allowed"},
		"no such digest":     {set("rootfs", map[string]any{"diff_ids": []string{"md5:1"}}), nil, "not a SHA-256"},
		"fewer layers":       {set("rootfs", map[string]any{"diff_ids": []string{}}), nil, "lists 0"},
		"many layers": {set("rootfs", map[string]any{"diff_ids": many}), func(i *testImage) {
			i.layers, i.types = slices.Repeat(i.layers, 300), slices.Repeat(i.types, 300)
			i.seal(t)
		}, "at most 256"},
		"an artifact": {nil, func(i *testImage) {
			i.manifest = bytes.Replace(i.manifest, []byte(configTypes[0]), []byte("application/vnd.x"), 1)
		}, "an artifact"},
		"foreign layer": {nil, func(i *testImage) {
			i.types[0] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
			i.seal(t)
		}, "want tar, gzip or zstd"},
		"version 1": {nil, func(i *testImage) { i.manifest = []byte(`{"schemaVersion":1}`) }, "version 1"},
		"both":      {nil, func(i *testImage) { i.manifest = append(i.manifest[:len(i.manifest)-1], `,"manifests":[{}]}`...) }, "not an image manifest"},
		"nothing":   {nil, func(i *testImage) { i.manifest = []byte(`{"schemaVersion":2}`) }, "not an image manifest"},
		"a path as digest": {nil, func(i *testImage) {
			i.manifest = bytes.Replace(i.manifest, []byte(digestOf(i.layers[0])), []byte("sha256:../../../../etc/passwd"), 1)
		}, "not a SHA-256"},
		"negative size": {nil, func(i *testImage) { i.manifest = bytes.Replace(i.manifest, []byte(`"size":`), []byte(`"size":-`), 1) }, "are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			img := imageOf(t, gzipped, c.config, l)
			if c.seal != nil {
				c.seal(img)
			}
			refused(t, Options{}, ref(t, "oci:"+layoutOf(t, img)), c.want)
		})
	}
	// What a working directory means.
	img := imageOf(t, gzipped, func(c map[string]any) { c["config"] = map[string]any{"WorkingDir": "../a/../b"} }, l)
	if got, err := openStore(t, Options{}).Get(t.Context(), ref(t, "oci:"+layoutOf(t, img)), "", nil); err != nil || got.Config.WorkingDir != "/b" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestBomb: what unpacks to much more is refused, also behind the archive's end.
func TestBomb(t *testing.T) {
	for _, how := range []packing{gzipped, zstdTar} {
		after := append(layerOf(t, file("a", "1")), make([]byte, 8<<20)...)
		r := ref(t, "oci:"+layoutOf(t, imageOf(t, how, nil, after)))
		refused(t, Options{Limits: Limits{Bytes: 1000, Entries: 10}}, r, "unpacks to more")
		headers := layerOf(t, slices.Repeat([]*tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": strings.Repeat("x", 100_000)}}}, 20)...)
		refused(t, Options{Limits: Limits{Bytes: 1000, Entries: 10}}, ref(t, "oci:"+layoutOf(t, imageOf(t, how, nil, headers))), "unpacks to more")
	}
}

// TestLayoutChoice: tags, digests and platforms.
func TestLayoutChoice(t *testing.T) {
	one, two := imageOf(t, gzipped, nil, layerOf(t, file("f", "one"))), imageOf(t, gzipped, nil, layerOf(t, file("f", "two")))
	far := imageOf(t, gzipped, func(c map[string]any) { c["architecture"] = "s390x" }, layerOf(t, file("f", "far")))
	dir := layoutOf(t, one)
	two.blobsTo(t, dir)
	far.blobsTo(t, dir)
	index := func(list ...any) []byte { return marshal(t, map[string]any{"schemaVersion": 2, "manifests": list}) }
	nested := index(two.entryOf("", runtime.GOARCH), far.entryOf("", "s390x"))
	write(t, blobFile(dir, digestOf(nested)), nested)
	inner := map[string]any{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": digestOf(nested), "size": len(nested), "annotations": map[string]string{refName: "many"}}
	loop := inner
	for range 6 { // each in one more index
		data := index(loop)
		write(t, blobFile(dir, digestOf(data)), data)
		loop = map[string]any{"digest": digestOf(data), "size": len(data), "annotations": map[string]string{refName: "deep"}}
	}
	write(t, filepath.Join(dir, "index.json"), index(one.entryOf("1", ""), far.entryOf("far", "s390x"), inner, loop))
	for in, want := range map[string]string{
		":1": "one", ":many": "two", "@" + digestOf(one.manifest): "one", "@" + digestOf(nested): "two",
		"": `several images: write oci:DIR:TAG; it has "1", "deep", "far", "many"`, ":x": "no such image", "@" + digestOf(nil): "no such image",
		":far": `only for "linux/s390x"`, ":deep": "nested indexes",
	} {
		s := openStore(t, Options{})
		img, err := s.Get(t.Context(), ref(t, "oci:"+dir+in), "", nil)
		if err != nil {
			if len(want) < 4 || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v; want %q", in, err, want)
			}
		} else if have := tree(t, img.RootFS); !slices.Equal(have, []string{"f: " + want}) {
			t.Errorf("%q: %q; want %q", in, have, want)
		}
	}
	for name, change := range map[string]func(dir string){
		"no oci-layout": func(d string) { os.Remove(filepath.Join(d, "oci-layout")) },
		"want 1.0.0":    func(d string) { write(t, filepath.Join(d, "oci-layout"), []byte(`{"imageLayoutVersion":"2"}`)) },
		"are allowed": func(d string) {
			write(t, blobFile(d, digestOf(nil)), nil)
			write(t, filepath.Join(d, "index.json"), index(map[string]any{"digest": digestOf(nil), "size": 1 << 30}))
		},
		"more than":             func(d string) { os.Truncate(filepath.Join(d, "index.json"), maxManifest+1) },
		"is not a regular file": func(d string) { f := filepath.Join(d, "index.json"); os.Remove(f); unix.Mkfifo(f, 0o600) },
		"opened":                func(d string) { rmtree.Remove(d) },
	} {
		d := layoutOf(t, one)
		change(d)
		refused(t, Options{}, ref(t, "oci:"+d), name)
	}
}

// TestPlatforms: the plainest variant of this architecture.
func TestPlatforms(t *testing.T) {
	entry := func(digest, os, arch, variant string) descriptor {
		return descriptor{Digest: digest, Platform: &platform{OS: os, Architecture: arch, Variant: variant}}
	}
	list := []descriptor{entry("x", "unknown", "unknown", ""), entry("3", "linux", "amd64", "v3"), entry("w", "windows", "amd64", ""), entry("1", "linux", "amd64", ""), entry("8", "linux", "arm64", "v8")}
	for arch, want := range map[string]string{"amd64": "1", "arm64": "8"} {
		if d, err := choose(list, arch); err != nil || d.Digest != want {
			t.Errorf("%s: %v, %v", arch, d, err)
		}
	}
	_, err := choose(list, "riscv64")
	var none *PlatformError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), `"linux/amd64", "linux/amd64/v3", "linux/arm64/v8", "windows/amd64"`) {
		t.Error(err)
	}
}

// archiveOf writes what docker save writes of images.
func archiveOf(t testing.TB, extra []*tar.Header, tags map[string]*testImage) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h *tar.Header, data []byte) {
		h.Mode = 0o644
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	var list []saved
	for tag, img := range tags {
		hex := strings.TrimPrefix(digestOf(img.config), "sha256:")
		s := saved{Config: hex + ".json", RepoTags: []string{tag}}
		add(&tar.Header{Name: s.Config}, img.config)
		for _, l := range img.layers {
			name := strings.TrimPrefix(digestOf(l), "sha256:") + "/layer.tar"
			add(&tar.Header{Name: name}, l)
			link := "link-" + name
			add(&tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: "../" + name}, nil)
			s.Layers = append(s.Layers, link)
		}
		list = append(list, s)
	}
	for _, h := range extra {
		add(h, nil)
	}
	if list != nil {
		add(&tar.Header{Name: "manifest.json"}, marshal(t, list))
	}
	w.Close()
	name := filepath.Join(t.TempDir(), "saved.tar")
	write(t, name, b.Bytes())
	return name
}

func TestArchive(t *testing.T) {
	one, two := imageOf(t, plainTar, nil, layerOf(t, file("f", "one"))), imageOf(t, gzipped, nil, layerOf(t, file("f", "two")))
	name := archiveOf(t, nil, map[string]*testImage{"acme/one:1": one, "two:latest": two})
	for in, want := range map[string]string{
		":acme/one:1": "one", ":docker.io/library/two": "two", ":two": "two",
		"": `has 2 images: write docker-archive:FILE:NAME:TAG; it has "acme/one:1", "two:latest"`, ":x": "no such image",
	} {
		s := openStore(t, Options{})
		img, err := s.Get(t.Context(), ref(t, "docker-archive:"+name+in), Never, nil)
		if err != nil {
			if len(want) < 4 || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v; want %q", in, err, want)
			}
		} else if have := tree(t, img.RootFS); !slices.Equal(have, []string{"f: " + want}) {
			t.Errorf("%q: %q; want %q", in, have, want)
		}
	}
	// One image from two places is unpacked once.
	s := openStore(t, Options{})
	for _, r := range []string{"docker-archive:" + name + ":acme/one:1", "oci:" + layoutOf(t, one)} {
		if _, err := s.Get(t.Context(), ref(t, r), "", nil); err != nil {
			t.Error(err)
		}
	}
	leftovers(t, s, 1)

	change := func(old, new string) string {
		data, err := os.ReadFile(archiveOf(t, nil, map[string]*testImage{"one:1": one}))
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "changed.tar")
		write(t, out, bytes.Replace(data, []byte(old), []byte(new), 1))
		return out
	}
	packed := filepath.Join(t.TempDir(), "packed.tar.gz")
	whole, _ := os.ReadFile(name)
	write(t, packed, pack(t, gzipped, whole))
	fifo := filepath.Join(t.TempDir(), "fifo")
	unix.Mkfifo(fifo, 0o600)
	cut := filepath.Join(t.TempDir(), "cut.tar")
	write(t, cut, whole[:len(whole)/2])
	for want, file := range map[string]string{
		"its configuration is damaged or was replaced": change("65532", "00000"),
		"layer 1 unpacked is damaged or was replaced":  change("one", "two"),
		"compressed":            packed,
		"is not a regular file": fifo,
		"`docker save`":         archiveOf(t, nil, nil),
		"loop":                  archiveOf(t, []*tar.Header{{Name: "manifest.json", Typeflag: tar.TypeSymlink, Linkname: "manifest.json"}}, nil),
		"not a valid tar":       cut,
		"can't be opened":       "/nonexistent/x.tar",
	} {
		refused(t, Options{}, ref(t, "docker-archive:"+file), want)
	}
}

// FuzzExtract reads its input as orders for entries, out of names that mean
// something: what raw archives could do more is archive/tar's.
func FuzzExtract(f *testing.F) {
	parts := []string{"a", "b", "l", "..", ".", "", ".wh.a", ".wh.l", ".wh..wh..opq", ".wh...", "secret", "../../b", "/", "dev"}
	types := []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeSymlink, tar.TypeReg, tar.TypeFifo}
	f.Add([]byte{2, 2, 5, 11, 5, 0, 2, 10, 5, 5}, []byte{0, 2, 6, 5, 5, 1, 0, 8, 5, 5})
	f.Add([]byte{1, 0, 5, 5, 5, 2, 0, 2, 11, 5, 3, 0, 1, 2, 10}, []byte{0, 0, 8, 5, 5, 0, 0, 2, 10, 5})
	layer := func(t *testing.T, script []byte) []byte {
		var list []*tar.Header
		for len(script) >= 5 && len(list) < 20 {
			pick := func(i int) string { return parts[int(script[i])%len(parts)] }
			h := &tar.Header{Typeflag: types[int(script[0])%len(types)], Name: pick(1) + "/" + pick(2), Mode: int64(script[4])<<4 | 0o100}
			switch h.Typeflag {
			case tar.TypeReg:
				h.Name = strings.TrimRight(h.Name+"/"+pick(3), "/") + "x"[:script[4]%2]
				h.Linkname, h.Size = "data", 4
			case tar.TypeSymlink, tar.TypeLink:
				h.Linkname = pick(3) + "/" + pick(4)
			}
			if h.Typeflag != tar.TypeDir && strings.HasSuffix(h.Name, "/") {
				h.Name += "."
			}
			list, script = append(list, h), script[5:]
		}
		return layerOf(t, list...)
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		// It says itself whether anything outside was changed.
		root, outside, err := unpackTo(t, Limits{Bytes: 1 << 20, Entries: 200}, layer(t, one), layer(t, two))
		var st unix.Stat_t
		if serr := unix.Stat(filepath.Join(outside, "secret"), &st); serr != nil || st.Nlink != 1 {
			t.Errorf("%v, %d names", serr, st.Nlink)
		}
		if info, serr := os.Lstat(root); serr != nil || !info.IsDir() {
			t.Errorf("%v, %v, %v", info, serr, err)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	img := imageOf(f, gzipped, nil, layerOf(f, file("a", "1")))
	f.Add(img.manifest, img.config)
	f.Fuzz(func(t *testing.T, manifest, config []byte) {
		_, _ = resolve(t.Context(), nowhere{}, manifest, "amd64", Limits{}.withDefaults())
		if c, _, err := parseConfig(config, "amd64"); err == nil && c.WorkingDir != "" && !filepath.IsAbs(c.WorkingDir) {
			t.Errorf("working directory %q", c.WorkingDir)
		}
	})
}

// FuzzDecompress: what is packed oddly ends.
func FuzzDecompress(f *testing.F) {
	for _, how := range []packing{plainTar, gzipped, zstdTar} {
		f.Add(pack(f, how, layerOf(f, file("a", "1"))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if z, err := decompress(bytes.NewReader(data)); err == nil {
			_, _ = io.Copy(io.Discard, &bounded{z, 1 << 20})
			z.Close()
		}
	})
}
