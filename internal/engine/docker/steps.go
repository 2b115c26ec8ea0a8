package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/internal/engine"
)

// step carries out one step.
func (r *run) step(ctx context.Context, s engine.Step) error {
	switch s.Op {
	case engine.OpPullImage:
		return r.e.pull(ctx, r.p, s, r.runner.Emit)
	case engine.OpBuildImage:
		return r.e.build(ctx, r.p, s, r.runner.Emit)
	case engine.OpWaitReady:
		return r.wait(ctx, s)
	case engine.OpCheckPort:
		if info, err := r.e.Info(ctx); err != nil || !info.Local {
			return err // the engine is remote
		}
		return engine.CheckPort(ctx, r.e, r.p.Compiled, s.Key)
	}
	ctx, cancel := engine.Finish(ctx)
	defer cancel()
	switch s.Op {
	case engine.OpLoadInit:
		_, err := r.e.loadInit(ctx)
		return err
	case engine.OpFillTools:
		return r.e.fillTools(ctx, engine.VolumeName(r.p.Compiled.Project, s.Key), engine.ObjectLabels(r.p.Compiled))
	case engine.OpCreateNetwork:
		return r.createNetwork(ctx, s)
	case engine.OpCreateVolume:
		return r.createVolume(ctx, s)
	case engine.OpFillVolume:
		if _, ok := r.p.Compiled.Caches[s.Key]; ok {
			return r.e.giveCache(ctx, r.p.Compiled, s.Key)
		}
		return r.e.fill(ctx, r.p.Compiled, s.Key)
	case engine.OpReloadPolicy:
		return r.reload(ctx, s)
	case engine.OpCreateContainer:
		return r.create(ctx, s)
	case engine.OpStartContainer:
		return r.start(ctx, s)
	case engine.OpStopContainer:
		defer r.e.endByDialIn(ctx, s.ObjectID, r.p.Project, s.Service, stopAfter)()
		return ignoreGone(r.e.cli.ContainerStop(ctx, s.ObjectID, container.StopOptions{}))
	case engine.OpRemoveContainer:
		return r.removeContainer(ctx, s)
	case engine.OpRemoveNetwork:
		return conflict(ignoreGone(r.e.cli.NetworkRemove(ctx, s.ObjectID)))
	case engine.OpRemoveVolume:
		return conflict(ignoreGone(r.e.cli.VolumeRemove(ctx, s.ObjectID, false)))
	}
	return fmt.Errorf("step %d: the docker engine has no operation %d", s.ID, int(s.Op))
}

// ignoreGone accepts that somebody else removed the object.
func ignoreGone(err error) error {
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// conflict marks an engine's error as an [engine.ConflictError] if the project has
// changed since it was observed: a name is taken, or a container, network or volume
// is gone or in use.
func conflict(err error) error {
	switch {
	case err == nil:
		return nil
	case cerrdefs.IsConflict(err), cerrdefs.IsNotFound(err),
		strings.Contains(err.Error(), "has active endpoints"),                 // of a network to remove
		strings.Contains(err.Error(), "is ambiguous"),                         // two networks with one name
		strings.Contains(err.Error(), "cannot join network of a non running"): // its room has ended
		return &engine.ConflictError{Err: err}
	}
	return err
}

func (r *run) createNetwork(ctx context.Context, s engine.Step) error {
	p := r.p.Compiled.Project
	n := p.Networks[s.Key]
	if err := checkKnown("network "+s.Key, n); err != nil {
		return err
	}
	o := network.CreateOptions{Driver: n.Driver, Internal: n.Internal, Options: n.DriverOpts, EnableIPv6: n.EnableIPv6, Labels: engine.NetworkLabels(r.p.Compiled, s.Key)}
	if n.Ipam.Driver != "" || len(n.Ipam.Config) > 0 {
		o.IPAM = &network.IPAM{Driver: n.Ipam.Driver}
		for _, pool := range n.Ipam.Config {
			o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{Subnet: pool.Subnet, Gateway: pool.Gateway, IPRange: pool.IPRange})
		}
	}
	_, err := r.e.cli.NetworkCreate(ctx, engine.NetworkName(p, s.Key), o)
	if err != nil && strings.Contains(err.Error(), "non-overlapping") {
		return fmt.Errorf("%w: the engine has no free address range left; remove unused networks with `docker network prune`", err)
	}
	return conflict(err)
}

func (r *run) createVolume(ctx context.Context, s engine.Step) error {
	c := r.p.Compiled
	v := c.Project.Volumes[s.Key]
	if err := checkKnown("volume "+s.Key, v); err != nil {
		return err
	}
	name := engine.VolumeName(c.Project, s.Key)
	made, err := r.e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: engine.VolumeLabels(c, s.Key)})
	if err == nil && !engine.OfProject(made.Labels, c) { // the engine returns an existing one
		err = fmt.Errorf("volume %s exists and doesn't belong to the project: remove it with `docker volume rm %s`, or use -p for another project name", name, name)
	}
	return conflict(err)
}

func (r *run) id(service string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[service]
}

// creation returns what is asked for a service's container, in Docker's words. imageID is
// the image of a container that exists; "": the project's.
func (r *run) creation(ctx context.Context, service, imageID string) (*creation, error) {
	image, joins := "", ""
	if ref := engine.ImageRef(r.p.Desired, service); r.e.isInit(ctx, ref) {
		if image = r.p.Observed.Images[ref]; image == "" { // loaded since
			id, err := r.e.findInit(ctx)
			if err != nil {
				return nil, err
			}
			image = id
		}
	}
	mode := r.p.Compiled.Project.Services[service].NetworkMode
	if room, ok := strings.CutPrefix(mode, "service:"); ok {
		joins = r.id(room)
	}
	t, err := translate(r.p.Desired, service, joins, image)
	if err != nil {
		return nil, err
	}
	info, err := r.e.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Unlimited {
		t.withoutLimits(info.Limits)
	}
	if image == "" {
		err = r.e.byImage(ctx, t, cmp.Or(imageID, t.config.Image))
	}
	return t, err
}

func (r *run) create(ctx context.Context, s engine.Step) error {
	t, err := r.creation(ctx, s.Service, "")
	if err != nil {
		return err
	}
	if !r.e.isInit(ctx, engine.ImageRef(r.p.Desired, s.Service)) {
		if err := r.e.checkImageLinks(ctx, t, r.linksOf(t)); err != nil {
			return err
		}
	}
	if err := r.translated(ctx, s.Service, t); err != nil {
		return err
	}
	made, err := r.e.createContainer(ctx, t)
	if err != nil && r.e.removeUnknown(ctx, t.name, err) {
		made, err = r.e.createContainer(ctx, t)
	}
	switch {
	case cerrdefs.IsConflict(err):
		return r.taken(ctx, t.name, err)
	case err != nil:
		return conflict(err)
	}
	r.mu.Lock()
	r.ids[s.Service], r.sent[made.ID] = made.ID, t
	r.mu.Unlock()
	// Not only when it is started: a worker is created while its room starts.
	_, err = r.checked(ctx, made.ID, s.Service)
	return err
}

// idTries is how often a creation is tried that fails by the engine's own concurrency.
const idTries = 5

// createContainer creates a container. podman reads /etc/subuid by a library that isn't safe
// for concurrent use, so that of creations with keep-id at the same time some find none
// (podman: pkg/rootless/rootless_linux.go, GetConfiguredMappings; shadow: lib/subordinateio.c).
func (e *Engine) createContainer(ctx context.Context, t *creation) (made container.CreateResponse, err error) {
	for range idTries {
		made, err = e.cli.ContainerCreate(ctx, t.config, t.host, t.network, t.platform, t.name)
		if err == nil || !strings.Contains(err.Error(), "keep-id requires additional UIDs") {
			break
		}
	}
	return made, err
}

// removeUnknown removes what a podman that ended while it created a container left of it: a
// name in its storage of which its database knows nothing, and which no build has. It
// reports whether it did.
func (e *Engine) removeUnknown(ctx context.Context, name string, taken error) bool {
	if !strings.Contains(taken.Error(), "creating container storage") || !strings.Contains(taken.Error(), "already in use") {
		return false
	}
	id, err := e.unknown(ctx, name)
	return err == nil && id != "" && ignoreGone(e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})) == nil
}

// taken returns an error that says who has the name of a container to create.
func (r *run) taken(ctx context.Context, name string, taken error) error {
	c, err := r.e.inspect(ctx, name, name)
	if err != nil { // it is being created
		return conflict(taken)
	}
	if c.Config.Labels[engine.LabelProject] == r.p.Project && engine.OurContainer(c.Config.Labels) {
		return engine.Conflict("container %s was created by another run: wait for it, and run `workshop up` again", name)
	}
	return fmt.Errorf("container %s exists and doesn't belong to the project: remove it with `docker rm -f %s`, or use -p for another project name", name, name)
}

func (r *run) start(ctx context.Context, s engine.Step) error {
	id := s.ObjectID
	if id == "" {
		id = r.id(s.Service)
	}
	c, err := r.checked(ctx, id, s.Service)
	if err != nil {
		return err
	}
	goOn, err := r.holdWriters(ctx, s.Service)
	if err != nil {
		return err
	}
	defer goOn()
	if err := r.checkWays(ctx, s.Service, mountsOf(c)); err != nil {
		return err
	}
	if err := r.placeAgain(ctx, s.Service); err != nil {
		return err
	}
	rd, err := r.e.listen(ctx, id, startOf(id, c.State.FinishedAt), r.p.Compiled.Project.Services[s.Service].Tty)
	if err != nil {
		return conflict(err)
	}
	r.mu.Lock()
	r.ids[s.Service], r.ready[id] = id, rd
	r.mu.Unlock()
	return r.startError(s.Service, r.e.cli.ContainerStart(ctx, id, container.StartOptions{}))
}

// forceRemove removes a container. It asks podman twice where that fails though the container
// is as good as gone: it ended before podman's SIGKILL, or its /dev/shm was still mounted, since
// podman itself was killed while it started it. Then podman removes the directory twice at the
// same time, once without unmounting, and forgets the container (containers/storage:
// store.go, DeleteContainer; libpod/runtime_ctr.go, removeContainer).
func (e *Engine) forceRemove(ctx context.Context, id string) (err error) {
	for range 2 {
		err = e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || !strings.Contains(err.Error(), "container state improper") && !strings.Contains(err.Error(), "/userdata/shm: device or resource busy") {
			break
		}
	}
	return err
}

func (r *run) removeContainer(ctx context.Context, s engine.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeWithin, &engine.SilentError{Container: s.ObjectID})
	defer cancel()
	defer r.e.endByDialIn(ctx, s.ObjectID, r.p.Project, s.Service, removeAfter)()
	err := r.e.forceRemove(ctx, s.ObjectID)
	// "Removal already in progress": wait for the end of another call.
	for cerrdefs.IsConflict(err) {
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
		if _, inspect := r.e.inspect(ctx, s.ObjectID, s.ObjectID); cerrdefs.IsNotFound(inspect) {
			return nil
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ignoreGone(err)
}
