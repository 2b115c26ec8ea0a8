package docker

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// imageVolumeSize is the size of the tmpfs over a volume that an image declares.
const imageVolumeSize = 64 << 20

// byImage mounts a small tmpfs over each volume that the image declares and the
// workshop doesn't mount: the engine would create a writable volume without a size
// limit on the machine's disk (B3). It also reads the image's environment.
func (e *Engine) byImage(ctx context.Context, t *creation, ref string) error {
	image, err := e.cli.ImageInspect(ctx, ref)
	if err != nil {
		return fmt.Errorf("volumes of the image %s: %w", t.config.Image, e.explain(err))
	}
	if image.Config == nil {
		return nil
	}
	t.imageEnv = image.Config.Env
	return cover(t.host, sortedKeys(image.Config.Volumes))
}

func cover(h *container.HostConfig, volumes []string) error {
	for _, dir := range volumes {
		dir = path.Clean("/" + dir)
		_, known := h.Tmpfs[dir]
		if known || slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return path.Clean(m.Target) == dir }) {
			continue
		}
		for _, m := range h.Mounts {
			if subpath.Within(dir, path.Clean(m.Target)) && m.Type == mount.TypeBind {
				// The engine would make its mount point on this machine, as root.
				return &engine.RefusedError{
					Promise: "B7", Reason: fmt.Sprintf("the image declares a volume at %s, inside the mount at %s", dir, m.Target),
					Do: "mount a directory of your own at " + dir + ", choose another target, or use an image that doesn't declare it",
				}
			}
		}
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeTmpfs, Target: dir, TmpfsOptions: &mount.TmpfsOptions{SizeBytes: imageVolumeSize, Mode: 0o1777},
		})
	}
	return nil
}
