package hostlink

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestFollow(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("real/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"abs": at("real"), "up": "real/../real/below", "beyond": "abs/below/..", "none": "abs/none/x", "loop": "loop", "top": "/"}
	for i := range most + 1 {
		links[fmt.Sprintf("chain%d", i)] = fmt.Sprintf("chain%d", i+1)
	}
	for name, to := range links {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, path, want string }{
		{"no link", "real/below", "real/below"},
		{"nothing there", "a/b", "a/b"},
		{"absolute", "abs/below/x", "real/below/x"},
		{"relative, upwards", "up", "real/below"},
		{"back from where links lead", "beyond", "real"},
		{"to nothing", "none/y", "real/none/x/y"},
		{"loop", "loop/x", "loop/x"},
		{"as many as Linux follows", "chain1", fmt.Sprintf("chain%d", most+1)},
		{"one more", "chain0", "chain0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Follow(at(tt.path), nil); err != nil || got != at(tt.want) {
				t.Errorf("got %s, %v, want %s", got, err, at(tt.want))
			}
		})
	}
	if got, err := Follow(at("top/none"), nil); err != nil || got != "/none" {
		t.Errorf("top/none: %s, %v", got, err)
	}
	var parts []string
	_, _ = Follow(at("abs/x"), func(part string) {
		if rel, err := filepath.Rel(dir, part); err == nil && filepath.IsLocal(rel) {
			parts = append(parts, rel)
		}
	})
	if want := []string{".", "abs", ".", "real", "real/x"}; !slices.Equal(parts, want) {
		t.Errorf("parts %q, want %q", parts, want)
	}
}

// B60: who puts links into a directory doesn't decide how long they are followed.
func TestLongWays(t *testing.T) {
	for name, part := range map[string]string{"parts": "/x", "nowhere": "/./x", "bytes": "/" + strings.Repeat("x", 250)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i := range most {
				to := fmt.Sprintf("l%d", i+1)
				if err := os.Symlink(to+strings.Repeat(part, (500-len(to))/len(part)), filepath.Join(dir, fmt.Sprintf("l%d", i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("l%d", most)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			began := testutil.Now()
			if end, err := Follow(filepath.Join(dir, "l0"), nil); err == nil {
				t.Errorf("it leads to %.80s…", end)
			}
			if took := testutil.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestOpenDir(t *testing.T) {
	top := t.TempDir()
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, dir := range []string{"real/sub", "other"} {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real", "real/up": "..", "out": t.TempDir(), "none": "nowhere"} {
		if err := root.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rel       string
		old, made bool // whether it is opened without being made, and with that
	}{
		{".", true, true}, {"real", true, true}, {"real/sub", true, true}, {"new/a/b", false, true},
		{"link", false, false}, {"link/sub", false, false}, {"real/up", false, false}, {"real/up/other", false, false}, {"out", false, false}, {"out/x", false, false},
		{"none", false, false}, {"file", false, false}, {"file/x", false, false},
	} {
		for _, create := range []bool{false, true} {
			d, err := OpenDir(root, c.rel, create)
			if want := c.old || create && c.made; (err == nil) != want {
				t.Errorf("%s, made %v: %v", c.rel, create, err)
			}
			if err != nil {
				continue
			}
			here, err := d.Stat(".")
			there, other := os.Lstat(filepath.Join(top, c.rel))
			if err != nil || other != nil || !os.SameFile(here, there) {
				t.Errorf("%s is another directory: %v, %v", c.rel, err, other)
			}
			_ = d.Close()
		}
	}
	if _, err := root.Lstat("nowhere"); err == nil {
		t.Error("it was made by a link")
	}
}
