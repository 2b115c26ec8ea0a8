//go:build linux

package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
)

// floor makes the containers of a project again by bare calls: network,
// create, start, at most 4 at a time, and nothing else.
type floor struct {
	ctx     context.Context
	docker  *client.Client
	network string
	bodies  map[string]container.InspectResponse // by service
	ids     map[string]string
}

const concurrency = 4

func newFloor(ctx context.Context, docker *client.Client, template string) (*floor, error) {
	f := &floor{ctx: ctx, docker: docker, network: template + "-floor", bodies: map[string]container.InspectResponse{}}
	all, err := docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "com.docker.compose.project="+template))})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		i, err := docker.ContainerInspect(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		// it belongs to nobody, so that no `down` finds it
		i.Config.Labels = map[string]string{"dev.llmdo.workshop.bench": "floor"}
		i.HostConfig.RestartPolicy = container.RestartPolicy{}
		i.HostConfig.PortBindings = nil
		f.bodies[c.Labels["com.docker.compose.service"]] = i
	}
	return f, nil
}

func (f *floor) up() (time.Duration, error) {
	start := time.Now()
	if _, err := f.docker.NetworkCreate(f.ctx, f.network, network.CreateOptions{Driver: "bridge"}); err != nil {
		return 0, err
	}
	f.ids = map[string]string{}
	first, rest := []string{}, []string{}
	for name := range f.bodies {
		if name == "guard" || strings.HasPrefix(name, "room") {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	for _, group := range [][]string{first, rest} {
		slices.Sort(group)
		g, ctx := errgroup.WithContext(f.ctx)
		g.SetLimit(concurrency)
		ids := make([]string, len(group))
		for i, name := range group {
			body, room := f.bodies[name], f.ids["room"]
			g.Go(func() error {
				h := *body.HostConfig
				var nets *network.NetworkingConfig
				if h.NetworkMode.IsContainer() {
					h.NetworkMode = container.NetworkMode("container:" + room)
				} else if !h.NetworkMode.IsNone() {
					h.NetworkMode = container.NetworkMode(f.network)
					nets = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{f.network: {}}}
				}
				c := *body.Config
				if h.NetworkMode.IsContainer() {
					c.Hostname = ""
				}
				created, err := f.docker.ContainerCreate(ctx, &c, &h, nets, nil, "")
				if err != nil {
					return err
				}
				ids[i] = created.ID
				return f.docker.ContainerStart(ctx, created.ID, container.StartOptions{})
			})
		}
		err := g.Wait()
		for i, name := range group {
			if ids[i] != "" {
				f.ids[name] = ids[i]
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (f *floor) down() (time.Duration, error) {
	start := time.Now()
	g, ctx := errgroup.WithContext(f.ctx)
	g.SetLimit(concurrency)
	for _, id := range slices.Sorted(maps.Values(f.ids)) {
		g.Go(func() error { return f.docker.ContainerRemove(ctx, id, container.RemoveOptions{Force: true}) })
	}
	err := g.Wait()
	f.ids = nil
	if e := f.docker.NetworkRemove(f.ctx, f.network); err == nil && !cerrdefs.IsNotFound(e) {
		err = e
	}
	return time.Since(start), err
}

// drain reads a stream of the engine to its end.
func drain(r io.ReadCloser) error {
	defer r.Close()
	_, err := io.Copy(io.Discard, r)
	return err
}
