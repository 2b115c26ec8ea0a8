//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/workshop"
)

// B60: a worker that may write to the project can put a FIFO in the place of a
// file; nothing here waits for its other end.
func TestFIFOsAreNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".env", "w.md", "workshop.yaml"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := projectFS{dir: dir}
		for _, file := range []string{"workshop.yaml", ".env", "w.md"} {
			f, err := s.Open(file)
			if err != nil {
				t.Error(err)
				continue
			}
			f.Close()
		}
		if _, list := workshop.Load(t.Context(), s, "workshop.yaml", workshop.Options{}); !list.HasErrors() {
			t.Error("it loads")
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}

// B45: a link in the repository doesn't bring in another project's values.
func TestLinkedEnvFileIsRefused(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	env := filepath.Join(elsewhere, "other.env")
	if err := os.WriteFile(env, []byte("TOKEN=value-of-another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(env, filepath.Join(dir, ".env")); err != nil {
		t.Fatal(err)
	}
	text := "workshop:\n  name: a\n  container: {image: x, env: {A: \"${TOKEN:-none}\"}}\n  workers: [w]\n"
	if err := os.WriteFile(filepath.Join(dir, "workshop.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, list := workshop.Load(t.Context(), projectFS{dir: dir}, "workshop.yaml", workshop.Options{})
	if !strings.Contains(list.Error(), "outside of the project") || strings.Contains(list.Error(), "value-of-another") {
		t.Error(list)
	}
}
