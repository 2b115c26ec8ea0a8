package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
)

// compare compares what a container of a step reports of itself, before it is ready, with
// what was asked of the engine, and notes this start of it. One that differs is removed, and
// the error is an [engine.RefusedError].
func (r *run) compare(ctx context.Context, s engine.Step, id, start, report string) error {
	info, err := r.e.Info(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	c := r.asked[id]
	r.mu.Unlock()
	a, err := madeAsked(r.p.Compiled.Roles[s.Service], c, info)
	if err != nil {
		return fmt.Errorf("container of %s: %w", s.Service, err)
	}
	is, known, err := r.known.Add(s.Service, r.p.Compiled.RoomOf[s.Service], report, info)
	if err == nil && is.Limits == nil && a.Limits != nil && info.Flavour == engine.FlavourPodman && info.Daemon.Rootless && c.host.NetworkMode.IsContainer() {
		err = r.limitsOutside(ctx, s.Service, id, is)
	}
	var sources []engine.Source
	ended := false // why is told next, and another start isn't compared
	if err == nil && a.OwnKernel {
		known.GVisor, is.Limits, sources, err = r.gvisorOutside(ctx, s.Service, id)
		if ended = errors.Is(err, errEnded); ended {
			known.Unseen, err = append(known.Unseen, engine.UnseenEnded), nil
		}
	}
	if err == nil {
		if note := engine.KernelNote(a, known, is); note != "" {
			r.runner.Emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: note})
		}
		err = engine.RefuseMade(a.Role, s.Service, engine.CompareMade(a, known, is))
	}
	if err == nil && ended {
		return nil
	}
	if err == nil {
		return r.e.opts.Compared.Keep(r.p.Project, s.Service, start, sources...)
	}
	return errors.Join(err, r.removeWrong(ctx, s.Service, id))
}

// compareAgain compares a container that ran before this plan, as `up` was killed before it
// did, or something else than `up` started it.
func (r *run) compareAgain(ctx context.Context, s engine.Step, id string, said *readiness) error {
	c, err := r.checked(ctx, id, s.Service)
	if err != nil {
		return err
	}
	if c.HostConfig.Runtime == compose.GVisorRuntime { // it doesn't show what it mounts
		return errors.Join(engine.Conflict("%s was started by something else than `up`", s.Service), r.removeWrong(ctx, s.Service, id))
	}
	if said.made == "" { // as its log was rotated: the next plan creates it
		return errors.Join(engine.Conflict("%s was started by something else than `up`, and its log doesn't say any more what it is", s.Service), r.removeWrong(ctx, s.Service, id))
	}
	return r.compare(ctx, s, id, said.start, said.made)
}

// removeWrong removes a container, and before it the workers in it if it is a room that
// podman doesn't remove from below them.
func (r *run) removeWrong(ctx context.Context, service, id string) error {
	ctx, cancel := engine.Finish(ctx)
	defer cancel()
	err := ignoreGone(r.e.forceRemove(ctx, id))
	if err == nil || !strings.Contains(err.Error(), "has dependent containers") {
		return err
	}
	err = nil
	for _, worker := range sortedKeys(r.p.Compiled.RoomOf) {
		if in := r.id(worker); in != "" && r.p.Compiled.RoomOf[worker] == service {
			err = errors.Join(err, ignoreGone(r.e.forceRemove(ctx, in)))
		}
	}
	return errors.Join(err, ignoreGone(r.e.forceRemove(ctx, id)))
}

// limitsOutside adds to a report the limits of a container that doesn't see its control
// groups, as podman without root shows it the machine's or none: they are read of its main
// process on this machine.
func (r *run) limitsOutside(ctx context.Context, service, id string, is *made.Report) error {
	c, err := r.e.inspect(ctx, id, service)
	if err != nil {
		return err
	}
	if err := addLimits(is, c.State.Pid); err != nil {
		return fmt.Errorf("limits of %s: %w", service, err)
	}
	return nil
}

// addLimits adds the limits of a process, which must be in the PID namespace of the report.
func addLimits(is *made.Report, pid int) (err error) {
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err != nil || ns != is.Namespaces["pid"] {
		return errors.Join(fmt.Errorf("process %d has the PID namespace %q, want %q", pid, ns, is.Namespaces["pid"]), err)
	}
	is.Limits, err = made.ReadLimits(pid)
	return err
}

// startOf names a start of a container by the end of the previous one, which is known before
// it. podman notes no end of what a restart of the machine ended: it needs the boot, too.
func startOf(id, finished string) string { return id + " " + finished + " " + made.BootID() }

// askedFor keeps what was asked for, of a container to compare.
func (r *run) askedFor(id string, c *creation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[id] = c
}

// madeAsked is what a creation asks for.
func madeAsked(role compose.Role, c *creation, info engine.Info) (engine.Asked, error) {
	h := c.host
	a := engine.Asked{
		Role: role, Shm: h.ShmSize, Rlimits: map[string][2]uint64{}, Limits: limitsAsked(h, info),
		OtherRuntime: cmp.Or(h.Runtime, info.DefaultRuntime),
	}
	a.OwnKernel = role == compose.RoleWorker && h.Runtime == compose.GVisorRuntime
	if role != compose.RoleWorker || h.NetworkMode.IsContainer() && !a.OwnKernel || compose.KernelRuntime(a.OtherRuntime) {
		a.OtherRuntime = ""
	}
	if uid, gid, ok := strings.Cut(c.config.User, ":"); ok && strings.Trim(uid+gid, "0123456789") == "" {
		a.UID, a.GID = uid, gid
	}
	if info.Flavour == engine.FlavourPodman && info.Daemon.Rootless {
		uid, gid := os.Getuid(), os.Getgid()
		a.UIDMap, a.GIDMap, a.Group = keptID(int64(uid), info.Daemon.UIDs), keptID(int64(gid), info.Daemon.GIDs), strconv.Itoa(gid)
	}
	has := []string(h.CapAdd)
	if info.Flavour == engine.FlavourPodman { // whose inspection, at a restart, is relative to its default capabilities
		has = podmanCapabilities(side{host: h})
	}
	var err error
	if a.Capabilities, err = engine.CapabilitySet(has); err != nil {
		return a, err
	}
	for _, u := range h.Ulimits {
		a.Rlimits[u.Name] = [2]uint64{uint64(u.Soft), uint64(u.Hard)}
	}
	for _, m := range h.Mounts {
		x := engine.AskedMount{Target: path.Clean(m.Target), ReadOnly: m.ReadOnly}
		if m.Type == mount.TypeTmpfs && m.TmpfsOptions != nil {
			x.Size = m.TmpfsOptions.SizeBytes
		}
		a.Mounts = append(a.Mounts, x)
	}
	for _, target := range sortedKeys(h.Tmpfs) {
		m, err := tmpfsAsked(target, h.Tmpfs[target])
		if err != nil {
			return a, err
		}
		a.Mounts = append(a.Mounts, m)
	}
	return a, nil
}

// keptID is the map of ids of a container with podman's keep-id (user_namespaces(7)): the
// caller, who is 0 in podman's own user namespace, has the same id as on the machine, and
// the others of n follow each other.
func keptID(id, n int64) string {
	return fmt.Sprintf("0 1 %d, %d 0 1, %d %d %d", id, id, id+1, id+1, n-id-1)
}

// limitsAsked are the limits that the engine can enforce.
func limitsAsked(h *container.HostConfig, info engine.Info) *made.Limits {
	l := &made.Limits{Swap: -1}
	if info.Limits.Memory {
		l.Memory = h.Memory
	}
	if info.Limits.Swap {
		l.Swap = h.MemorySwap - h.Memory
	}
	if info.Limits.CPU {
		l.CPUs = float64(h.NanoCPUs) / 1e9
	}
	if info.Limits.PIDs && h.PidsLimit != nil {
		l.PIDs = *h.PidsLimit
	}
	if *l == (made.Limits{Swap: -1}) {
		return nil
	}
	return l
}

// tmpfsAsked reads the options of a tmpfs (tmpfs(5)).
func tmpfsAsked(target, options string) (engine.AskedMount, error) {
	m := engine.AskedMount{Target: path.Clean(target)}
	for o := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "ro":
			m.ReadOnly = true
		case "nosuid":
			m.NoSetuid = true
		case "nodev":
			m.NoDevice = true
		case "noexec":
			m.NoExec = true
		case "size":
			var err error
			if m.Size, err = units.RAMInBytes(value); err != nil {
				return m, fmt.Errorf("tmpfs %s: %w", target, err)
			}
		}
	}
	return m, nil
}
