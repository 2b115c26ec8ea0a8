package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// giveCache makes the directory of a cache its worker's, for nobody else. The content
// stays as it is.
func (e *Engine) giveCache(ctx context.Context, c *compose.Compiled, key string) error {
	name := engine.VolumeName(c.Project, key)
	uid, gid, ok := strings.Cut(c.Caches[key].User, ":")
	u, err := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	if !ok || err != nil || err2 != nil {
		return fmt.Errorf("cache %s: the user %q is not uid:gid in numbers", name, c.Caches[key].User)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	// The engine leaves an entry "." as it is, so the stream is for the directory above.
	h := &tar.Header{Name: path.Base(fillDir) + "/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: u, Gid: g}
	if err := errors.Join(w.WriteHeader(h), w.Close()); err != nil {
		return fmt.Errorf("cache %s: %w", name, err)
	}
	err = e.withHelper(ctx, helper{mount: name, at: fillDir, labels: engine.ObjectLabels(c), volume: mountedLabels(c, key)}, func(id string) error {
		return e.cli.CopyToContainer(ctx, id, path.Dir(fillDir), &b, container.CopyToContainerOptions{})
	})
	if err != nil {
		return fmt.Errorf("cache %s: %w", name, err)
	}
	return nil
}

// Caches lists the volumes with the label of a cache.
func (e *Engine) Caches(ctx context.Context, sizes bool) ([]engine.Cache, error) {
	label := filters.NewArgs(filters.Arg("label", compose.LabelCache))
	list, err := e.cli.VolumeList(ctx, volume.ListOptions{Filters: label})
	if err != nil {
		return nil, e.explain(err)
	}
	containers, err := e.cli.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, e.explain(err)
	}
	used := map[string]bool{}
	for i := range containers {
		for _, m := range containers[i].Mounts {
			used[m.Name] = true
		}
	}
	size := map[string]int64{}
	if sizes && len(list.Volumes) > 0 {
		usage, err := e.cli.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.VolumeObject}})
		if err != nil {
			return nil, e.explain(err)
		}
		for _, v := range present(usage.Volumes) {
			if v.UsageData != nil {
				size[v.Name] = v.UsageData.Size
			}
		}
	}
	var out []engine.Cache
	for _, v := range present(list.Volumes) {
		c, ok := engine.CacheOf(engine.Object{Name: v.Name, Labels: v.Labels})
		if !ok {
			continue
		}
		c.InUse = used[v.Name]
		c.Created, _ = time.Parse(time.RFC3339, v.CreatedAt) // for display
		if n, ok := size[v.Name]; ok {
			c.Size = n
		}
		out = append(out, c)
	}
	return out, nil
}

// RemoveCache removes a volume that is a cache.
func (e *Engine) RemoveCache(ctx context.Context, c engine.Cache) error {
	v, err := e.cli.VolumeInspect(ctx, c.Name)
	if err != nil {
		return ignoreGone(err)
	}
	if _, ok := engine.CacheOf(engine.Object{Name: v.Name, Labels: v.Labels}); !ok {
		return fmt.Errorf("volume %s is not a cache", c.Name)
	}
	return conflict(ignoreGone(e.cli.VolumeRemove(ctx, c.Name, false)))
}
