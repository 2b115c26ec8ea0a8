//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// unpackTo unpacks layers into a directory of its own, beside a file of another
// image and one of the host.
func unpackTo(t testing.TB, limits Limits, layers ...[]byte) (root, outside string, err error) {
	t.Helper()
	base := t.TempDir()
	t.Cleanup(func() { rmtree.Remove(base) })
	root, outside = filepath.Join(base, "images", "a", "rootfs"), filepath.Join(base, "images", "b")
	for _, d := range []string{root, outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(outside, "secret"), []byte("secret"))
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	x := newExtractor(t.Context(), fd, limits, os.Geteuid() == 0)
	defer x.forget()
	for _, l := range layers {
		if err = x.layer(bytes.NewReader(l)); err != nil {
			break
		}
	}
	if err == nil {
		err = x.finish()
	}
	if have := tree(t, outside); !slices.Equal(have, []string{"secret: secret"}) {
		t.Errorf("another image was changed: %q", have)
	}
	for _, d := range []string{base, filepath.Dir(outside), filepath.Dir(root)} {
		list, err := os.ReadDir(d)
		if want := map[string]int{base: 1, filepath.Dir(outside): 2, filepath.Dir(root): 1}[d]; err != nil || len(list) != want {
			t.Errorf("outside was changed: %v, %v", list, err)
		}
	}
	return root, outside, err
}

// TestRefused: what no layer may bring along is an error that names it.
func TestRefused(t *testing.T) {
	pax := func(h *tar.Header, owner int) *tar.Header { h.Uid, h.Gid = owner, owner; return h }
	for name, c := range map[string]struct {
		want    string // in the error
		entries []*tar.Header
	}{
		"dot dot":                  {"has a ..", []*tar.Header{file("../../b/x", "x")}},
		"dot dot inside":           {"has a ..", []*tar.Header{dir("a", 0o755), file("a/../../../b/x", "x")}},
		"dot dot at the end":       {"has a ..", []*tar.Header{dir("a/..", 0o700)}},
		"absolute dot dot":         {"has a ..", []*tar.Header{file("/../b/x", "x")}},
		"through a link":           {"symbolic link", []*tar.Header{link("l", "../../b"), file("l/x", "x")}},
		"through an absolute link": {"symbolic link", []*tar.Header{link("l", "/etc"), file("l/x", "x")}},
		"through a link inside":    {"symbolic link", []*tar.Header{dir("d", 0o755), link("l", "d"), file("l/x", "x")}},
		"directories by a link":    {"symbolic link", []*tar.Header{link("l", "../../b"), dir("l/x/y", 0o755)}},
		"link below a link":        {"symbolic link", []*tar.Header{link("l", "../../b"), link("l/secret", "x")}},
		"through a file":           {"not a directory", []*tar.Header{file("f", "x"), file("f/x", "x")}},
		"hard link out":            {"has a ..", []*tar.Header{hard("h", "../../b/secret")}},
		"hard link absolute":       {"does not exist", []*tar.Header{hard("h", "/etc/passwd")}},
		"hard link by a link":      {"symbolic link", []*tar.Header{link("l", "../../b"), hard("h", "l/secret")}},
		"hard link below a link":   {"symbolic link", []*tar.Header{file("f", "x"), link("l", "../../b"), hard("l/h", "f")}},
		"hard link to a directory": {"not a file", []*tar.Header{dir("d", 0o755), hard("h", "d")}},
		"hard link to itself":      {"not a file", []*tar.Header{file("h", "x"), hard("h", "./h")}},
		"hard link to the root":    {"not a file", []*tar.Header{hard("h", "/")}},
		"hard link to nothing":     {"does not exist", []*tar.Header{hard("h", "x")}},
		"device":                   {"a device", []*tar.Header{special("etc/null", tar.TypeChar)}},
		"block device":             {"a device", []*tar.Header{special("sda", tar.TypeBlock)}},
		"FIFO":                     {"a FIFO", []*tar.Header{special("run/pipe", tar.TypeFifo)}},
		"a device called dev":      {"a device", []*tar.Header{special("dev", tar.TypeBlock)}},
		"unknown type":             {"type", []*tar.Header{{Name: "x", Typeflag: 'V'}}},
		"empty link":               {"not a valid path", []*tar.Header{link("l", "")}},
		"root is a file":           {"root", []*tar.Header{file(".", "x")}},
		"root is a link":           {"root", []*tar.Header{link(".", "/")}},
		"nobody's owner":           {"owner", []*tar.Header{pax(file("f", "x"), 1<<32-1)}},
		"negative owner":           {"owner", []*tar.Header{pax(file("f", "x"), -2)}},
		"whiteout of nothing":      {"names nothing", []*tar.Header{file(".wh.", "")}},
		"whiteout of dot":          {"names nothing", []*tar.Header{file("a/.wh..", "")}},
		"whiteout of dot dot":      {"names nothing", []*tar.Header{file("a/.wh...", "")}},
		"below a whiteout":         {"below a whiteout", []*tar.Header{file(".wh.a/b", "")}},
		"long part":                {"part of more than", []*tar.Header{file(strings.Repeat("a", 256), "x")}},
		"long name":                {"more than 4096", []*tar.Header{file(strings.Repeat("a/", 2100)+"x", "x")}},
		"deep":                     {"deeper than 128", []*tar.Header{dir(strings.Repeat("a/", 129), 0o755)}},
		"long link":                {"not a valid path", []*tar.Header{link("l", strings.Repeat("a", 5000))}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpackTo(t, Limits{}, layerOf(t, c.entries...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestLayers: what is unpacked over one another.
func TestLayers(t *testing.T) {
	type layers = [][]*tar.Header
	for name, c := range map[string]struct {
		in   layers
		want []string
	}{
		"absolute is the image's root": {layers{{file("/etc/x", "1")}}, []string{"etc/", "etc/x: 1"}},
		"no directory entries":         {layers{{file("a/b/c", "1")}}, []string{"a/", "a/b/", "a/b/c: 1"}},
		"twice":                        {layers{{file("f", "1"), file("./f", "2")}}, []string{"f: 2"}},
		"over a hard link":             {layers{{file("f", "1"), hard("g", "f")}, {file("f", "2")}}, []string{"f: 2", "g: 1"}},
		"over a link":                  {layers{{link("l", "../../b/secret")}, {file("l", "2")}}, []string{"l: 2"}},
		"directory over a link":        {layers{{link("l", "../../b")}, {dir("l", 0o755), file("l/f", "2")}}, []string{"l/", "l/f: 2"}},
		"file over a directory":        {layers{{file("d/f", "1"), dir("d/e", 0o500)}, {file("d", "2")}}, []string{"d: 2"}},
		"directory over a file":        {layers{{file("d", "1")}, {dir("d", 0o755), file("d/f", "2")}}, []string{"d/", "d/f: 2"}},
		"directory over a directory":   {layers{{file("d/f", "1")}, {dir("d", 0o700), file("d/g", "2")}}, []string{"d/", "d/f: 1", "d/g: 2"}},
		"replaced while it is open":    {layers{{file("d/f", "1"), link("d", "../../b"), file("e", "1")}}, []string{"d -> ../../b", "e: 1"}},
		"hard link to a link":          {layers{{link("l", "/etc/passwd"), hard("h", "l")}}, []string{"h -> /etc/passwd", "l -> /etc/passwd"}},
		"hard link over a file":        {layers{{file("f", "1"), file("g", "2"), hard("g", "f")}}, []string{"f: 1", "g: 1"}},
		"devices below dev":            {layers{{special("dev/null", tar.TypeChar), special("./dev/p", tar.TypeFifo)}}, nil},
		"whiteout":                     {layers{{file("d/f", "1"), file("d/g", "1")}, {file("d/.wh.f", "")}}, []string{"d/", "d/g: 1"}},
		"whiteout of a directory":      {layers{{file("d/e/f", "1"), file("g", "1")}, {file(".wh.d", "")}}, []string{"g: 1"}},
		"whiteout of a link":           {layers{{link("l", "../../b")}, {file(".wh.l", "")}}, nil},
		"whiteout below a directory of links": {
			layers{{link("d/l", "../../../b"), link("d/m", "/")}, {file(".wh.d", "")}}, nil,
		},
		"whiteout of what isn't there":   {layers{{file("f", "1")}, {file("x/y/.wh.z", ""), file(".wh.z", "")}}, []string{"f: 1"}},
		"whiteout spares its own layer":  {layers{{file("d/f", "1")}, {file("d/g", "2"), file(".wh.d", "")}}, []string{"d/", "d/g: 2"}},
		"whiteout in the first layer":    {layers{{file("f", "1"), file(".wh.f", "")}}, []string{"f: 1"}},
		"opaque":                         {layers{{file("d/f", "1"), file("d/e/g", "1")}, {file("d/.wh..wh..opq", ""), file("d/h", "2")}}, []string{"d/", "d/h: 2"}},
		"opaque at the end":              {layers{{file("d/f", "1"), file("d/e/g", "1")}, {file("d/h", "2"), file("d/e/i", "2"), file("d/.wh..wh..opq", "")}}, []string{"d/", "d/e/", "d/e/i: 2", "d/h: 2"}},
		"opaque root":                    {layers{{file("f", "1"), file("d/g", "1")}, {file(".wh..wh..opq", ""), file("h", "2")}}, []string{"h: 2"}},
		"AUFS":                           {layers{{file("f", "1")}, {file(".wh..wh.plnk", ""), file("d/.wh..wh.aufs", "")}}, []string{"f: 1"}},
		"whiteout, then again":           {layers{{file("d/f", "1")}, {file(".wh.d", "")}, {file("d/g", "3")}}, []string{"d/", "d/g: 3"}},
		"a directory that can't be read": {layers{{dir("d", 0), file("d/f", "1")}, {file("d/.wh.f", ""), file("d/g", "2")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var packed [][]byte
			for _, l := range c.in {
				packed = append(packed, layerOf(t, l...))
			}
			root, _, err := unpackTo(t, Limits{}, packed...)
			if err != nil {
				t.Fatal(err)
			}
			if name == "a directory that can't be read" {
				if err := os.Chmod(filepath.Join(root, "d"), 0o700); err != nil {
					t.Fatal(err)
				}
				c.want = []string{"d/", "d/g: 2"}
			}
			if have := tree(t, root); !slices.Equal(have, c.want) {
				t.Errorf("%q; want %q", have, c.want)
			}
		})
	}
}

// TestWhiteoutByLink: a whiteout reaches through no link.
func TestWhiteoutByLink(t *testing.T) {
	for _, name := range []string{"l/.wh.secret", "l/.wh..wh..opq", "k/m/.wh.secret"} {
		_, _, err := unpackTo(t, Limits{}, layerOf(t, link("l", "../../b"), link("k/m", "../../../b")), layerOf(t, file(name, "")))
		if name == "l/.wh..wh..opq" { // the link itself has nothing in it
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimits: bytes, entries and sparse files, which cost nothing to send.
func TestLimits(t *testing.T) {
	big := file("big", strings.Repeat("x", 1000))
	var many []*tar.Header
	for i := range 20 {
		many = append(many, file(strings.Repeat("a/", i)+"f", ""))
	}
	for name, c := range map[string]struct {
		limits Limits
		layers [][]byte
		want   string
	}{
		"bytes of one":       {Limits{Bytes: 999}, [][]byte{layerOf(t, big)}, "larger than 999"},
		"bytes of all":       {Limits{Bytes: 1999}, [][]byte{layerOf(t, big), layerOf(t, big)}, "larger than 1999"},
		"entries":            {Limits{Entries: 19}, [][]byte{layerOf(t, many...)}, "more than 19"},
		"entries over all":   {Limits{Entries: 2}, [][]byte{layerOf(t, file("a", "")), layerOf(t, file("a", ""), file("a", ""))}, "more than 2"},
		"implied count too":  {Limits{Entries: 5}, [][]byte{layerOf(t, file("a/b/c/d/e/f", ""))}, "more than 5"},
		"depth":              {Limits{Depth: 3}, [][]byte{layerOf(t, file("a/b/c/d", ""))}, "deeper than 3"},
		"sparse":             {Limits{}, [][]byte{sparseLayer(t, 1<<40)}, "larger than"},
		"sparse that is let": {Limits{}, [][]byte{sparseLayer(t, 1<<20)}, ""},
	} {
		root, _, err := unpackTo(t, c.limits, c.layers...)
		if c.want == "" {
			info, serr := os.Stat(filepath.Join(root, "sparse"))
			if err != nil || serr != nil || info.Size() != 1<<20 {
				t.Errorf("%s: %v, %v", name, err, serr)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// sparseLayer is an old GNU sparse file of a size, with no data at all.
func sparseLayer(t testing.TB, size int64) []byte {
	t.Helper()
	var b [1024 + 512]byte
	octal := func(field []byte, n int64) {
		s := strings.Repeat("0", len(field)) + string(appendOctal(nil, n))
		copy(field, s[len(s)-len(field)+1:])
	}
	copy(b[0:], "sparse")
	octal(b[100:108], 0o644)
	octal(b[108:116], 0)
	octal(b[116:124], 0)
	octal(b[124:136], 0)
	octal(b[136:148], 0)
	b[156] = tar.TypeGNUSparse
	copy(b[257:], "ustar  \x00")
	// One fragment without bytes at the end, as GNU tar writes it.
	octal(b[386:398], size)
	octal(b[398:410], 0)
	gnuSize(b[483:495], size)
	copy(b[148:156], "        ")
	var sum int64
	for _, c := range b[:512] {
		sum += int64(c)
	}
	octal(b[148:155], sum)
	b[155] = ' '
	return b[:]
}

func appendOctal(out []byte, n int64) []byte {
	if n >= 8 {
		out = appendOctal(out, n/8)
	}
	return append(out, byte('0'+n%8))
}

// gnuSize writes numbers that octal has no room for in base 256.
func gnuSize(field []byte, n int64) {
	field[0] = 0x80
	for i := len(field) - 1; i > 0 && n > 0; i-- {
		field[i] = byte(n)
		n >>= 8
	}
}
