package docker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// List lists the containers of all workshops by one call. What the call doesn't tell,
// the kernel does where it runs them: when a container was started, and its memory.
func (e *Engine) List(ctx context.Context) ([]engine.Listed, error) {
	if err := e.Ping(ctx); err != nil {
		return nil, err
	}
	list, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", compose.LabelRole))})
	if err != nil {
		return nil, e.explain(err)
	}
	type key struct{ project, directory string }
	all := map[key]*engine.Listed{}
	groups := groupsHere()
	for i := range list {
		c := observed(&list[i])
		if !engine.OurContainer(list[i].Labels) || c.OneOff || c.Helper {
			continue
		}
		k := key{list[i].Labels[engine.LabelProject], c.Directory}
		l := all[k]
		if l == nil {
			l = &engine.Listed{Project: k.project, Directory: k.directory, Memory: -1}
			all[k] = l
		}
		if c.State == "running" {
			c.Started = time.Unix(list[i].Created, 0)
			if memory, started, ok := groups.look(c.ID); ok {
				c.Started, l.Memory = started, max(l.Memory, 0)+memory
			}
		}
		l.Containers = append(l.Containers, c)
	}
	var out []engine.Listed
	for _, l := range all {
		sortfunc.Stable(l.Containers, func(a, b engine.Container) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, *l)
	}
	return out, nil
}

// Foreigners lists the TCP ports that containers of other Compose projects publish, each
// address once.
func (e *Engine) Foreigners(ctx context.Context) ([]engine.Published, error) {
	if err := e.Ping(ctx); err != nil {
		return nil, err
	}
	list, err := e.cli.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelProject))})
	if err != nil {
		return nil, e.explain(err)
	}
	var out []engine.Published
	for i := range list {
		if engine.OurContainer(list[i].Labels) {
			continue
		}
		c := observed(&list[i])
		for _, port := range c.Ports {
			address, target, _ := strings.Cut(port, "->")
			p := engine.Published{Project: list[i].Labels[engine.LabelProject], Container: c.Name, Address: address}
			if strings.HasSuffix(target, "/tcp") && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}
