package safetar

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func stream(t testing.TB, headers ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		body := ""
		if h.Typeflag == tar.TypeReg {
			body = h.Name
			h.Size = int64(len(body))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// tree lists what is below a directory, with the targets of links.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Type()&fs.ModeSymlink != 0 {
			link, _ := os.Readlink(p)
			rel += " -> " + link
		}
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// open opens a directory.
func open(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestExtract: what a worker packs can't reach beside the target (B43).
func TestExtract(t *testing.T) {
	reg := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, to string) *tar.Header {
		return &tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
	}
	dir := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o500} }
	for _, c := range []struct {
		name, as string
		in       []*tar.Header
		want     []string
		skipped  int
	}{
		{"file", "", []*tar.Header{reg("f")}, []string{"f"}, 0},
		{"file under another name", "g", []*tar.Header{reg("f")}, []string{"g"}, 0},
		{"directory", "", []*tar.Header{dir("d/"), reg("d/f")}, []string{"d", "d/f"}, 0},
		{"directory under another name", "e", []*tar.Header{dir("d/"), reg("d/f")}, []string{"e", "e/f"}, 0},
		{"dot dot", "", []*tar.Header{reg("../f"), reg("d/../../f")}, nil, 2},
		{"dot dot under another name", "g", []*tar.Header{reg("f"), reg("../x"), reg("f/../../x")}, []string{"g"}, 2},
		{"link beside it under another name", "e", []*tar.Header{dir("d/"), link("d/l", "../x"), link("d/m", "../e/f"), link("d/n", "f")}, []string{"e", "e/m -> ../e/f", "e/n -> f"}, 1},
		{"only a link, under another name", "g", []*tar.Header{link("l", "x")}, nil, 1},
		{"absolute", "", []*tar.Header{reg("/f")}, nil, 1},
		{"link inside", "", []*tar.Header{dir("d/"), reg("d/f"), link("d/l", "f")}, []string{"d", "d/f", "d/l -> f"}, 0},
		{"link out", "", []*tar.Header{link("l", "../x"), link("m", "/etc/passwd")}, nil, 2},
		{"through a link", "", []*tar.Header{dir("d/"), link("d/l", "."), reg("d/l/f")}, []string{"d", "d/l -> ."}, 1},
		{"link below a link", "", []*tar.Header{dir("p/"), dir("p/q/"), link("p/q/r", ".."), link("p/q/r/t", "../..")}, []string{"p", "p/q", "p/q/r -> .."}, 1},
		{"device", "", []*tar.Header{{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, nil, 1},
		{"hard link", "", []*tar.Header{{Name: "h", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}}, nil, 1},
		{"set-uid", "", []*tar.Header{{Name: "s", Typeflag: tar.TypeReg, Mode: 0o6755}}, []string{"s"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			target := filepath.Join(root, "target")
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			skipped, err := Extract(open(t, target), c.as, stream(t, c.in...), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := tree(t, target); !slices.Equal(got, c.want) {
				t.Errorf("below the target: %q, want %q", got, c.want)
			}
			if len(skipped) != c.skipped {
				t.Errorf("left behind: %q, want %d", skipped, c.skipped)
			}
			if beside := tree(t, root); len(beside) != 1+len(c.want) {
				t.Errorf("beside the target: %q", beside)
			}
			if info, err := os.Stat(filepath.Join(target, "s")); err == nil && info.Mode() != 0o755 {
				t.Errorf("mode %v", info.Mode())
			}
		})
	}
}

// TestPackExtract: what goes in comes out.
func TestPackExtract(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	os.MkdirAll(filepath.Join(from, "d", "e"), 0o755)
	os.WriteFile(filepath.Join(from, "d", "e", "f"), []byte("x"), 0o600)
	os.Symlink("e/f", filepath.Join(from, "d", "l"))
	var b bytes.Buffer
	if err := Pack(&b, open(t, from), "d", "n", 1000, 1001); err != nil {
		t.Fatal(err)
	}
	h, err := tar.NewReader(bytes.NewReader(b.Bytes())).Next()
	if err != nil || h.Uid != 1000 || h.Gid != 1001 {
		t.Errorf("first entry %+v, %v", h, err)
	}
	if skipped, err := Extract(open(t, to), "", &b, Limits{}); err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	if got, want := tree(t, to), []string{"n", "n/e", "n/e/f", "n/l -> e/f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzExtract: no stream crashes it or writes beside the target (B60).
func FuzzExtract(f *testing.F) {
	f.Add(stream(f, &tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/f", Typeflag: tar.TypeReg}).Bytes(), "")
	f.Add(stream(f, &tar.Header{Name: "l", Linkname: "..", Typeflag: tar.TypeSymlink}, &tar.Header{Name: "l/f", Typeflag: tar.TypeReg}).Bytes(), "n")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			return // a base name by construction
		}
		root := t.TempDir()
		target := filepath.Join(root, "target")
		os.Mkdir(target, 0o755)
		Extract(open(t, target), name, bytes.NewReader(data), Limits{Bytes: 1 << 20, Entries: 1000, Depth: 100})
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) != 1 {
			t.Errorf("beside the target: %v, %v", entries, err)
		}
	})
}

// Each of two links looks harmless; followed one after the other they led out
// of the target.
func TestExtractRefusesLinksThatClimbLater(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "out/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "out/x/y/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "out/x/y/b", Typeflag: tar.TypeSymlink, Linkname: "../.."},
		{Name: "out/z", Typeflag: tar.TypeSymlink, Linkname: "x/y/b/../.."},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	skipped, err := Extract(open(t, dir), "", &b, Limits{})
	if err != nil || len(skipped) != 1 || !strings.HasPrefix(skipped[0], "out/z: ") {
		t.Errorf("left behind %q, %v", skipped, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "out/z")); err == nil {
		t.Error("the link is there")
	}
}
