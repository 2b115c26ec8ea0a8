package copytree

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// B7: a directory above a source becomes a link after the source was looked at.
func TestNoLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"out/in", "keys/in"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &compose.Compiled{
		Copies: map[string]compose.Copy{"c": {Source: "./out/in"}},
		Facts:  &compose.Facts{Sources: map[string]compose.SourceFacts{"./out/in": {Exists: true, Dir: true, Real: filepath.Join(dir, "out/in")}}},
	}
	var b bytes.Buffer
	if err := Volume(tar.NewWriter(&b), c, "c"); err != nil || !strings.Contains(b.String(), "out/in") {
		t.Fatalf("%v %q", err, b.String())
	}
	if err := os.Rename(filepath.Join(dir, "out"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("keys", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := Volume(tar.NewWriter(&b), c, "c"); err == nil || !strings.Contains(err.Error(), "B7") || strings.Contains(b.String(), "keys") {
		t.Errorf("%v %q", err, b.String())
	}
}
