package safetar

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// B60: what a worker hands out is bounded, and its holes stay holes.
func TestExtractLimits(t *testing.T) {
	limits := Limits{Bytes: 8 << 20, Entries: 300, Depth: 16}
	entries := func(n int, name func(int) string, kind byte) (list []*tar.Header) {
		for i := range n {
			list = append(list, &tar.Header{Name: name(i), Typeflag: kind, Linkname: "/x"})
		}
		return list
	}
	flat := func(i int) string { return fmt.Sprint("f", i) }
	deep := func(i int) string { return strings.Repeat("d/", i+1) }
	for name, c := range map[string]struct {
		in      []*tar.Header
		beyond  bool
		skipped int
	}{
		"entries":                          {entries(301, flat, tar.TypeReg), true, 0},
		"as many as may":                   {entries(300, flat, tar.TypeReg), false, 0},
		"depth":                            {entries(17, deep, tar.TypeDir), true, 0},
		"as deep as may":                   {entries(16, deep, tar.TypeDir), false, 0},
		"what is skipped, with long names": {[]*tar.Header{{Name: strings.Repeat("d", 1<<13), Typeflag: tar.TypeFifo}}, false, 1},
		"what is skipped":                  {entries(300, flat, tar.TypeSymlink), false, maxSkipped + 1},
	} {
		skipped, err := Extract(open(t, t.TempDir()), "", stream(t, c.in...), limits)
		for _, s := range skipped {
			if len(s) > maxSkippedText+len("…") {
				t.Errorf("%s: %d bytes of %.50q", name, len(s), s)
			}
		}
		if errors.Is(err, ErrLimit) != c.beyond || err != nil && !c.beyond || len(skipped) != c.skipped {
			t.Errorf("%s: %d left behind, %v", name, len(skipped), err)
		}
	}
	// A file that claims to be large is refused before a byte of it is written.
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o644, Size: 900 << 30}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Extract(open(t, dir), "", &b, limits); !errors.Is(err, ErrLimit) || len(tree(t, dir)) > 0 {
		t.Errorf("%v, %q", err, tree(t, dir))
	}
	// Zeros take no space.
	b.Reset()
	w = tar.NewWriter(&b)
	data := append(make([]byte, 6<<20), 'x')
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}), func() error { _, err := w.Write(data); return err }(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Extract(open(t, dir), "", &b, limits); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if used := blocks(t, filepath.Join(dir, "f")); used > 1<<20 {
		t.Errorf("%d bytes of the disk", used)
	}
}

// blocks is what a file takes of the disk, in bytes.
func blocks(t *testing.T, name string) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}
