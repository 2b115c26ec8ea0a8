package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/internal/engine"
)

// A network's name is not its identity: when a run is killed while the engine
// makes a network for it, the next run may see none and make another of the
// same name. Nothing starts then, until one of the two is gone.

// startOnce starts a container; when a network of its project has a twin, the
// twin is removed and the start tried again.
func (r *run) startOnce(ctx context.Context, id string) error {
	err := r.e.cli.ContainerStart(ctx, id, container.StartOptions{})
	if err == nil || !strings.Contains(err.Error(), "is ambiguous") {
		return err
	}
	if e := r.removeTwins(ctx); e != nil {
		return err
	}
	return r.e.cli.ContainerStart(ctx, id, container.StartOptions{})
}

// removeTwins keeps the newest of several networks with one name. The engine
// refuses to remove one that is in use; that is left to it.
func (r *run) removeTwins(ctx context.Context) error {
	list, err := r.e.cli.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelProject+"="+r.p.Project))})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b network.Summary) int { return b.Created.Compare(a.Created) })
	seen := map[string]bool{}
	for _, n := range list {
		if seen[n.Name] {
			_ = r.e.cli.NetworkRemove(ctx, n.ID)
		}
		seen[n.Name] = true
	}
	return nil
}
