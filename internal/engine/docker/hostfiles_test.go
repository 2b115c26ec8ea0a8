package docker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
)

// TestPlaceFiles: a file that the engine reads by its path is ours, has its mode and text
// immediately before, or nothing is created.
func TestPlaceFiles(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "needs root to give files to another user")
	for _, tt := range []struct {
		name   string
		change func(dir, file string) error // of what was placed
		want   string                       // of the refusal; empty: none
	}{
		{"as it was", func(string, string) error { return nil }, ""},
		{"gone", func(_, file string) error { return os.Remove(file) }, ""},
		{"directory gone", func(dir, _ string) error { return os.RemoveAll(dir) }, ""},
		{"another text", func(_, file string) error { return os.WriteFile(file, []byte("text2"), 0o600) }, "has another content"},
		{"a longer text", func(_, file string) error { return os.WriteFile(file, []byte("text and more"), 0o600) }, "has another content"},
		{"another mode", func(_, file string) error { return os.Chmod(file, 0o666) }, "has mode -rw-rw-rw-, want -rw-------"},
		{"another owner", func(_, file string) error { return os.Chown(file, 1000, 1000) }, "belongs to uid 1000"},
		{"a link", func(dir, file string) error {
			return errors.Join(os.Rename(file, file+".x"), os.Symlink(file+".x", file))
		}, "has mode L"},
		{"a pipe in its place", func(_, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o600)) }, "has mode d"},
		{"directory open", func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "has mode drwxrwxrwx, want drwx------"},
		{"directory of another", func(dir, _ string) error { return os.Chown(dir, 1000, 1000) }, "belongs to uid 1000"},
		{"directory a link", func(dir, _ string) error { return errors.Join(os.Rename(dir, dir+".x"), os.Symlink(dir+".x", dir)) }, "has mode L"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "podman")
			file := dialect.File{Path: filepath.Join(dir, "seccomp-1"), Text: "text1", Mode: 0o600}
			if err := placeFiles([]dialect.File{file}); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir, file.Path); err != nil {
				t.Fatal(err)
			}
			err := placeFiles([]dialect.File{file})
			var refused *engine.RefusedError
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "":
				if b, err := os.ReadFile(file.Path); err != nil || string(b) != "text1" {
					t.Errorf("got %q, %v", b, err)
				}
			case !errors.As(err, &refused) || refused.Promise != "B2" || !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want a refusal (B2) with %q", err, tt.want)
			}
		})
	}
}
