//go:build unix

package docker

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/internal/engine"
)

// B60: an engine that names a directory with something else than files keeps no command
// waiting.
func TestOpenHere(t *testing.T) {
	dir := t.TempDir()
	e := &Engine{info: func(context.Context) (engine.Info, error) { return engine.Info{Local: true}, nil }}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"file": true, "pipe": false, "link": false, ".": false, "none": false} {
		opened := make(chan bool, 1)
		go func() {
			f := e.openHere(t.Context(), volume.Volume{Driver: "local", Mountpoint: dir}, name)
			if f != nil {
				f.Close()
			}
			opened <- f != nil
		}()
		select {
		case got := <-opened:
			if got != want {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: still waiting after 5s", name)
		}
	}
}
