package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	cerrdefs "github.com/containerd/errdefs"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// holdTime bounds the time for unpausing workers.
const holdTime = 10 * time.Second

// holdWriters pauses the project's running workers that may write to this machine's
// files, until goOn is called: between the last check of a worker's sources and its
// start the engine resolves them again, and a program that replaces a directory by
// a symbolic link would win that race in a few tries (B7).
func (r *run) holdWriters(ctx context.Context, service string) (goOn func(), err error) {
	goOn = func() {}
	if r.p.Compiled.Roles[service] != compose.RoleWorker {
		return goOn, nil
	}
	var ids []string
	for _, k := range r.p.Observed.Containers {
		if k.Service != service && (k.State == "running" || k.State == "paused") && r.writes(k) {
			ids = append(ids, k.ID)
		}
	}
	if len(ids) == 0 {
		return goOn, nil
	}
	r.holding.Lock()
	var paused []string
	goOn = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
		defer cancel()
		for _, id := range paused {
			_ = r.e.cli.ContainerUnpause(ctx, id) // an error means that it has ended
		}
		r.holding.Unlock()
	}
	for _, id := range ids {
		err := r.pauseRunning(ctx, id, service)
		if isSilent(err) {
			paused = append(paused, id) // it may still become paused
		}
		switch {
		case err == nil, strings.Contains(err.Error(), "already paused"): // by a run that was killed
			paused = append(paused, id)
		case cerrdefs.IsNotFound(err), cerrdefs.IsConflict(err), errors.Is(err, errNotRunning):
		default:
			// podman calls neither of them a conflict.
			if i, e := r.e.inspect(ctx, id, service); cerrdefs.IsNotFound(e) || e == nil && !i.State.Running && !i.State.Paused {
				continue
			} else if e == nil && i.State.Paused {
				paused = append(paused, id)
				continue
			}
			goOn()
			return func() {}, &engine.RefusedError{
				Promise: "B7", Reason: fmt.Sprintf("a running worker can't be paused while %s starts, and could replace what is mounted: %v", service, err),
				Do: "run `workshop down`, then `workshop up`",
			}
		}
	}
	return goOn, nil
}

var errNotRunning = errors.New("it does not run")

// pauseRunning pauses a container; [errNotRunning]: it doesn't run. One that another step stops, or that podman starts again,
// isn't running for the call, while its state is that it runs: it is asked again until one of
// them is true.
func (r *run) pauseRunning(ctx context.Context, id, service string) error {
	for end := time.Now().Add(holdTime); ; {
		err := r.e.pause(ctx, id)
		if err == nil || time.Now().After(end) || !strings.Contains(err.Error(), "is not running") {
			return err
		}
		if i, e := r.e.inspect(ctx, id, service); e == nil && !i.State.Running && !i.State.Paused {
			return errNotRunning
		} else if e != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// writes reports whether a container may write to files of this machine; an orphan
// may.
func (r *run) writes(k engine.Container) bool {
	role, known := r.p.Compiled.Roles[k.Service]
	if known && role != compose.RoleWorker {
		return false
	}
	if !known {
		return true
	}
	for _, v := range r.p.Compiled.Project.Services[k.Service].Volumes {
		if v.Type == types.VolumeTypeBind && !v.ReadOnly {
			return true
		}
	}
	return false
}
