package namespace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/made"
)

// compare compares what a container of a step reports of itself with its spec, unless this
// start of it was compared by an earlier run, and notes that. One that differs is removed, and
// the error is an [engine.RefusedError].
func (r *run) compare(ctx context.Context, c *client.Client, s engine.Step, ready *api.Ready) error {
	r.mu.Lock()
	start := startOf(r.ids[s.Service], ready.Started)
	r.mu.Unlock()
	if !r.p.Starts(s.Service) && r.e.opts.Compared.Has(r.p.Project, s.Service, start) {
		return nil
	}
	info := engine.Info{Kind: kind, Local: true} // the rest takes milliseconds to find out
	k, err := r.spec(ctx, c, s.Service)
	if err != nil {
		return err
	}
	a, err := r.madeAsked(k)
	if err != nil {
		return err
	}
	is, known, err := r.known.Add(s.Service, k.Network.Of, ready.Made, info)
	if err == nil {
		if is.Limits == nil && a.Limits != nil {
			is.Limits, err = limitsFromHere(ctx, c, s.Service)
		}
		err = errors.Join(err, engine.RefuseMade(a.Role, s.Service, engine.CompareMade(a, known, is)))
	}
	if err == nil {
		return r.e.opts.Compared.Keep(r.p.Project, s.Service, start)
	}
	ctx, cancel := engine.Finish(ctx)
	defer cancel()
	return errors.Join(err, ignoreGone(c.Remove(ctx, s.Service)))
}

// startOf names the start of a container at a time.
func startOf(id string, at time.Time) string { return id + " " + at.UTC().Format(time.RFC3339Nano) }

// isCompared reports whether a container was compared since its start.
func (e *Engine) isCompared(project string, s *api.Seen) bool {
	return e.opts.Compared.Has(project, s.Container.Service, startOf(s.Container.Labels[labelID], s.Started))
}

// spec returns the spec of a service that runs.
func (r *run) spec(ctx context.Context, c *client.Client, service string) (*spec.Container, error) {
	r.mu.Lock()
	sent := r.sent[service]
	r.mu.Unlock()
	if sent != nil {
		return sent, nil
	}
	all, err := c.List(ctx) // created by an earlier run
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Container.Service == service {
			return &all[i].Container, nil
		}
	}
	return nil, engine.Conflict("the container of %s is gone", service)
}

// limitsFromHere reads the limits of a container that doesn't see its control groups: a
// guard, which has no /sys, and any if parts of this machine's /sys are hidden.
func limitsFromHere(ctx context.Context, c *client.Client, service string) (*made.Limits, error) {
	pid, pidfd, err := c.Pid(ctx, service)
	if err != nil {
		return nil, err
	}
	defer pidfd.Close()
	l, err := made.ReadLimits(pid)
	if err != nil {
		return nil, fmt.Errorf("the limits of %s: %w", service, err)
	}
	return l, nil
}

var composeRoles = map[spec.Role]compose.Role{spec.Worker: compose.RoleWorker, spec.Room: compose.RoleRoom, spec.Guard: compose.RoleGuard, spec.Outlet: compose.RoleOutlet}

// madeAsked is what was asked for by a spec.
func (r *run) madeAsked(k *spec.Container) (engine.Asked, error) {
	a := engine.Asked{
		Role: composeRoles[k.Role], UID: strconv.FormatUint(uint64(k.Process.UID), 10), GID: strconv.FormatUint(uint64(k.Process.GID), 10),
		NoSetuid: true, Devices: k.Devices, Shm: k.Limits.Shm, Rlimits: map[string][2]uint64{}, MachineNetwork: k.Network.Mode == spec.NetHost,
	}
	if r.e.rootless {
		a.UIDMap, a.GIDMap, a.Unmapped = a.UID+" "+a.UID+" 1", a.GID+" "+a.GID+" 1", true
	}
	if !k.Limits.Unlimited {
		a.Limits = &made.Limits{Memory: k.Limits.Memory, CPUs: k.Limits.CPUs, PIDs: k.Limits.PIDs}
	}
	var err error
	if a.Capabilities, err = engine.CapabilitySet(k.Capabilities); err != nil {
		return a, err
	}
	for _, l := range k.Rlimits {
		a.Rlimits[l.Name] = [2]uint64{l.Soft, l.Hard}
	}
	for _, m := range k.Mounts {
		x := engine.AskedMount{Target: m.Target, ReadOnly: m.ReadOnly, NoExec: m.NoExec}
		if m.Type == spec.Tmpfs {
			x.Size = m.Size
		}
		a.Mounts = append(a.Mounts, x)
	}
	return a, nil
}
