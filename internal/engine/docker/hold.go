package docker

import (
	"context"
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
		held, err := r.hold(ctx, id, service)
		if held {
			paused = append(paused, id)
		}
		if err != nil {
			goOn()
			return func() {}, &engine.RefusedError{
				Promise: "B7", Reason: fmt.Sprintf("a running worker can't be paused while %s starts, and could replace what is mounted: %v", service, err),
				Do: "run `workshop down`, then `workshop up`",
			}
		}
	}
	return goOn, nil
}

// hold pauses a container that hasn't ended; paused: it is, or may still become so.
func (r *run) hold(ctx context.Context, id, service string) (paused bool, err error) {
	for end := time.Now().Add(holdTime); ; time.Sleep(20 * time.Millisecond) {
		err := r.e.pause(ctx, id)
		switch {
		case err == nil, strings.Contains(err.Error(), "already paused"): // by a run that was killed
			return true, nil
		case cerrdefs.IsNotFound(err), cerrdefs.IsConflict(err): // it has ended
			return false, nil
		}
		// podman calls neither of them a conflict.
		i, e := r.e.inspect(ctx, id, service)
		switch {
		case cerrdefs.IsNotFound(e), e == nil && !i.State.Running && !i.State.Paused:
			return isSilent(err), nil
		case e == nil && i.State.Paused:
			return true, nil
		// One that podman stops or starts at that moment isn't running for the call alone.
		case e != nil, !strings.Contains(err.Error(), "is not running"), time.Now().After(end):
			return isSilent(err), err
		}
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
