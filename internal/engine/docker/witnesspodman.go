package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// asPodmanShows changes settings into what Docker would show: podman's capabilities are
// relative to its default ones, a namespace of its own is private, and one of IPC is
// shareable, whichever was asked for.
func asPodmanShows(w *engine.Witness, h *container.HostConfig) {
	s := w.Settings
	s.CapAdd, s.CapDrop = podmanCapabilities(side{host: h}), []string{"ALL"}
	if s.Namespaces["ipc"] == string(container.IPCModeShareable) {
		s.Namespaces["ipc"] = string(container.IPCModePrivate)
	}
	for _, kind := range []string{"pid", "uts"} {
		if s.Namespaces[kind] == "private" {
			s.Namespaces[kind] = ""
		}
	}
}

// podmanBoundsLog reports whether what a container prints is kept up to a size, which
// podman's own API shows alone (podman: libpod/define/container_inspect.go). It keeps one
// file.
func (e *Engine) podmanBoundsLog(ctx context.Context, id string) (bool, error) {
	var out struct {
		HostConfig struct {
			LogConfig struct{ Size string }
		}
	}
	if err := e.libpodGet(ctx, "/containers/"+id+"/json", &out); err != nil {
		return false, fmt.Errorf("bounds of the log: %w", err)
	}
	size := out.HostConfig.LogConfig.Size
	return size != "" && size != "0B", nil
}
