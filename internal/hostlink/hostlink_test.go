package hostlink

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
			if got := Follow(at(tt.path), nil); got != at(tt.want) {
				t.Errorf("got %s, want %s", got, at(tt.want))
			}
		})
	}
	if got := Follow(at("top/none"), nil); got != "/none" {
		t.Errorf("top/none: %s", got)
	}
	var parts []string
	Follow(at("abs/x"), func(part string) {
		if rel, err := filepath.Rel(dir, part); err == nil && filepath.IsLocal(rel) {
			parts = append(parts, rel)
		}
	})
	if want := []string{".", "abs", ".", "real", "real/x"}; !slices.Equal(parts, want) {
		t.Errorf("parts %q, want %q", parts, want)
	}
}
