package docker

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/promise"
)

// Observe lists the objects with Compose's label of the project: one call each for
// containers, networks and volumes, and one per image, all concurrently. It separates
// objects that don't belong to a workshop ([engine.OurContainer]). What the engine returns
// of other projects, whatever it was asked for, is left out. With images it also
// reads the policy of the guard.
func (e *Engine) Observe(ctx context.Context, project string, images ...string) (engine.Observed, error) {
	if err := engine.RefuseImageFiles(promise.Docker, images...); err != nil {
		return engine.Observed{}, err
	}
	o := engine.Observed{Project: project, Images: map[string]string{}, Digests: map[string][]string{}}
	label := filters.NewArgs(filters.Arg("label", engine.LabelProject+"="+project))
	// Before concurrent calls; if it fails otherwise, they report it.
	if err := e.Ping(ctx); errors.Is(err, errSilent) {
		return engine.Observed{}, err
	}
	var volumes []*volume.Volume
	g, gctx := errgroup.WithContext(ctx)
	unknown := map[string]bool{} // containers whose network the list doesn't have
	g.Go(func() error {
		list, err := e.cli.ContainerList(gctx, container.ListOptions{All: true, Filters: label})
		for i := range list {
			if list[i].Labels[engine.LabelProject] != project {
				continue
			}
			c := observed(&list[i])
			unknown[c.ID] = list[i].HostConfig.NetworkMode == "" // podman
			if engine.OurContainer(list[i].Labels) {
				o.Containers = append(o.Containers, c)
			} else {
				o.Others = append(o.Others, engine.Other{Object: "container/" + c.Name, Directory: c.Directory})
			}
		}
		return err
	})
	g.Go(func() error {
		list, err := e.cli.NetworkList(gctx, network.ListOptions{Filters: label})
		for _, n := range list {
			if n.Labels[engine.LabelProject] != project {
				continue
			}
			o.Networks = append(o.Networks, engine.Object{ID: n.ID, Name: n.Name, Labels: n.Labels})
		}
		return err
	})
	g.Go(func() error {
		list, err := e.cli.VolumeList(gctx, volume.ListOptions{Filters: label})
		volumes = slices.DeleteFunc(present(list.Volumes), func(v *volume.Volume) bool { return v.Labels[engine.LabelProject] != project })
		for _, v := range volumes {
			o.Volumes = append(o.Volumes, engine.Object{Name: v.Name, Labels: v.Labels})
		}
		return err
	})
	var mu sync.Mutex
	for _, ref := range images {
		g.Go(func() error {
			id, digests, err := e.image(gctx, ref)
			if err != nil || id == "" {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			o.Images[ref], o.Digests[ref] = id, digests
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return engine.Observed{}, e.explain(err)
	}
	o.Sift()
	read := make(chan string, 1)
	go func() {
		if len(images) == 0 {
			read <- ""
			return
		}
		read <- e.policyDigest(ctx, slices.Clone(o.Containers), volumes)
	}()
	err := e.started(ctx, project, o.Containers, unknown, len(images) > 0)
	o.PolicyDigest = <-read
	if err != nil {
		return engine.Observed{}, e.explain(err)
	}
	byName := func(a, b engine.Object) int { return strings.Compare(a.Name, b.Name) }
	sortfunc.Stable(o.Networks, byName)
	sortfunc.Stable(o.Volumes, byName)
	sortfunc.Stable(o.Containers, func(a, b engine.Container) int { return strings.Compare(a.Name, b.Name) })
	return o, nil
}

// started gets the start times of running containers: the list has only the
// creation times, and a restarted room has a new namespace. It gets the networks of those
// that are unknown, too.
//
// A plan fails on a container that the engine doesn't respond about; showing or
// removing it needs no response.
func (e *Engine) started(ctx context.Context, project string, all []engine.Container, unknown map[string]bool, plan bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range all {
		if c := &all[i]; c.State == "running" || unknown[c.ID] {
			g.Go(func() error {
				i, err := e.inspect(ctx, c.ID, c.Name)
				switch {
				case cerrdefs.IsNotFound(err):
					return nil // removed concurrently: a later call finds out
				case isSilent(err) && !plan:
					c.Silent = true
					return nil
				case err != nil:
					return err
				}
				if unknown[c.ID] {
					c.NetworkOf = joined(string(i.HostConfig.NetworkMode))
				}
				if c.State != "running" {
					return nil
				}
				noted, compared := e.opts.Compared.Sources(project, c.Service, startOf(c.ID, i.State.FinishedAt))
				c.NotCompared, c.Sources, c.Replaced = !c.ByCompose && !compared, noted, engine.Replaced(noted)
				c.Started, err = time.Parse(time.RFC3339Nano, i.State.StartedAt)
				return err
			})
		}
	}
	return g.Wait()
}

// image returns the ID of an image, "" if there is none, and its digests in registries.
func (e *Engine) image(ctx context.Context, ref string) (id string, digests []string, err error) {
	if ref == "" {
		return "", nil, nil
	}
	if e.isInit(ctx, ref) {
		id, err = e.findInit(ctx)
		return id, nil, err
	}
	img, err := e.cli.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return "", nil, nil
	}
	return img.ID, img.RepoDigests, err
}

func observed(s *container.Summary) engine.Container {
	c := engine.Container{
		ID: s.ID, Service: s.Labels[engine.LabelService], Role: s.Labels[compose.LabelRole],
		Image: s.Image, ImageID: s.ImageID, ConfigHash: engine.MadeByEngine(s.Labels),
		State: stateOf(s.State), ExitCode: exitCode(s.Status), Directory: engine.ProjectDirectory(s.Labels),
		Helper:  engine.IsHelper(s.Labels),
		NotHeld: notHeld(s), OneOff: strings.EqualFold(s.Labels[engine.LabelOneOff], "true"),
	}
	c.ByCompose = c.ConfigHash == "" && !c.Helper
	if len(s.Names) > 0 {
		c.Name = strings.TrimPrefix(s.Names[0], "/")
	}
	c.NetworkOf = joined(s.HostConfig.NetworkMode)
	if s.NetworkSettings != nil {
		c.Networks = sortedKeys(s.NetworkSettings.Networks)
		for _, name := range c.Networks {
			if n := s.NetworkSettings.Networks[name]; n != nil && n.NetworkID != "" {
				c.NetworkIDs = append(c.NetworkIDs, n.NetworkID)
			}
		}
	}
	for _, m := range s.Mounts {
		if m.Type == mount.TypeVolume {
			c.Volumes = append(c.Volumes, m.Name)
		}
	}
	for _, p := range s.Ports {
		if p.PublicPort != 0 {
			c.Ports = append(c.Ports, net.JoinHostPort(p.IP, strconv.Itoa(int(p.PublicPort)))+"->"+strconv.Itoa(int(p.PrivatePort))+"/"+p.Type)
		}
	}
	slices.Sort(c.Ports)
	return c
}

// joined returns the ID of the container whose network a mode joins, "" if none.
func joined(mode string) string {
	id, ok := strings.CutPrefix(mode, "container:")
	if !ok {
		return ""
	}
	return id
}

// stateOf returns Docker's word for a state: in podman's a container is stopped until its
// exit has been noted.
func stateOf(state string) string {
	if state == "stopped" {
		return "exited"
	}
	return state
}

// exitCode parses the code from a list's status, "Exited (137) 2 minutes ago": the
// list has it nowhere else, and this saves an inspect per container.
func exitCode(status string) int {
	rest, ok := strings.CutPrefix(status, "Exited (")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, ")")
	code, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return code
}

// one returns the container of a service, which must exist.
func (e *Engine) one(ctx context.Context, project, service string) (engine.Container, error) {
	// As in Observe, with which it may run concurrently.
	if err := e.Ping(ctx); errors.Is(err, errSilent) {
		return engine.Container{}, err
	}
	list, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", engine.LabelProject+"="+project), filters.Arg("label", engine.LabelService+"="+service))})
	if err != nil {
		return engine.Container{}, e.explain(err)
	}
	for i := range list {
		l := list[i].Labels
		if c := observed(&list[i]); l[engine.LabelProject] == project && c.Service == service && engine.OurContainer(l) && !c.OneOff && !c.Helper {
			return c, nil
		}
	}
	return engine.Container{}, &engine.NotRunningError{Project: project, Services: []string{service}}
}
