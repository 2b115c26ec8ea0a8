//go:build unix

package docker

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

var errSkip = errors.New("not for this file")

// TestHostileContext: B60: what stands in the place of a file that the host reads
// of a build context is refused at once, by its name.
func TestHostileContext(t *testing.T) {
	for _, file := range []string{"Dockerfile", ".dockerignore"} {
		for shape, put := range map[string]func(name string) error{
			"is a named pipe": func(name string) error { return syscall.Mkfifo(name, 0o600) },
			"is a directory":  func(name string) error { return os.Mkdir(name, 0o700) },
			"at most 1000": func(name string) error {
				if file != ".dockerignore" {
					return errSkip
				}
				return os.WriteFile(name, []byte(strings.Repeat("**/a\n", 1001)), 0o600)
			},
			"larger than": func(name string) error {
				if err := os.WriteFile(name, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(name, 30<<30)
			},
		} {
			t.Run(file+" "+shape, func(t *testing.T) {
				dir := testutil.Tree(t, "Dockerfile")
				name := filepath.Join(dir, file)
				os.Remove(name)
				if err := put(name); err == errSkip {
					t.Skip("has no patterns")
				} else if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_, _, err := writeContext(t.Context(), io.Discard, dir, "Dockerfile")
					done <- err
				}()
				select {
				case err := <-done:
					if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), shape) {
						t.Errorf("got %v, want %s and that it %s", err, file, shape)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("it hangs")
				}
			})
		}
	}
}

// TestIgnoringEnds: B60: patterns that are slow to compare end with the command,
// and after a time.
func TestIgnoringEnds(t *testing.T) {
	dir := testutil.Tree(t, "Dockerfile", "a/"+strings.Repeat("a", 200))
	slow := strings.Repeat("**/"+strings.Repeat("a*", 80)+"b/**\n", 50)
	if err := os.WriteFile(filepath.Join(dir, ".dockerignore"), []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, _, err := writeContext(ctx, io.Discard, dir, "Dockerfile"); !errors.Is(err, stopped) {
		t.Errorf("got %v, want %v", err, stopped)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ignored, err := dockerignore(root)
	if err != nil || ignored.left != maxIgnoring {
		t.Fatal(err)
	}
	ignored.left = 1
	if _, err := ignored.matches(strings.Repeat("a", 200)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}
