package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// socketTime bounds the search of a worker's mounts for sockets.
const socketTime = 5 * time.Second

// gainedSockets are the unix sockets of this machine that are in the mounts of a running
// worker on gVisor now, which it can connect to: `up` refused those that were there before.
// w is as the file has it, without `sockets: allow`; nil: it isn't known, and each mount is
// searched. missed is about what was not.
func gainedSockets(ctx context.Context, w *workshop.Worker, c engine.Container) (found []string, missed error) {
	ctx, cancel := context.WithTimeoutCause(ctx, socketTime, fmt.Errorf("the search of its mounts didn't end within %v", socketTime))
	defer cancel()
	for i, s := range c.Sources {
		within := func(other engine.Source) bool { return other.Path != s.Path && subpath.Within(s.Path, other.Path) }
		if w != nil {
			m := workshop.MountAt(w.Container.Mounts, s.Target)
			if m == nil || m.Target.V != s.Target || m.AllowSockets { // m is nil for those of an image
				continue
			}
		} else if slices.ContainsFunc(c.Sources, within) || slices.ContainsFunc(c.Sources[:i], func(other engine.Source) bool { return other.Path == s.Path }) {
			continue
		}
		more, err := facts.Sockets(ctx, s.Path)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if found = append(found, more...); missed == nil {
			missed = err
		}
	}
	slices.Sort(found)
	return slices.Compact(found), missed
}

// addGained puts into the containers what their mounts have gained since their start. w is
// nil where the file can't be read.
func (s *Status) addGained(ctx context.Context, w *workshop.Workshop) {
	for i, c := range s.Observed.Containers {
		if len(c.Sources) == 0 {
			continue
		}
		var worker *workshop.Worker
		if w != nil {
			if n := slices.IndexFunc(w.Workers, func(x workshop.Worker) bool { return x.Name == c.Service }); n >= 0 {
				worker = &w.Workers[n]
			}
		}
		found, missed := gainedSockets(ctx, worker, s.Observed.Containers[i])
		at := slices.IndexFunc(s.Containers, func(p ContainerStatus) bool { return p.ID == c.ID })
		s.Containers[at].Sockets = found
		if missed != nil {
			s.Containers[at].SocketsMissed = missed.Error()
		}
	}
}

// MountsChanged reports whether the machine changed what the container has mounted in a way
// that it must not have, or that isn't known.
func (c ContainerStatus) MountsChanged() bool {
	return len(c.ReplacedMounts)+len(c.Sockets) > 0 || c.SocketsMissed != ""
}
