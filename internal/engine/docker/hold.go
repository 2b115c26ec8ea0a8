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

// holdTime bounds how long it takes to let paused workers go on.
const holdTime = 10 * time.Second

// holdWriters pauses the project's workers that ran before and may write to this
// machine's files, until goOn is called: between the last look at a worker's
// sources and its start the engine follows them once more, and a program that
// exchanges a directory for a link would win that race in a few tries (B7).
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
			_ = r.e.cli.ContainerUnpause(ctx, id) // one that is gone has nothing to go on with
		}
		r.holding.Unlock()
	}
	for _, id := range ids {
		err := r.e.pause(ctx, id)
		if isSilent(err) {
			paused = append(paused, id) // it may be yet
		}
		switch {
		case err == nil, strings.Contains(err.Error(), "already paused"): // by a killed run
			paused = append(paused, id)
		case cerrdefs.IsNotFound(err), cerrdefs.IsConflict(err): // it runs no more
		default:
			goOn()
			return func() {}, &engine.RefusedError{
				Promise: "B7", Reason: fmt.Sprintf("a worker that runs can't be paused while %s starts, and could exchange what is mounted: %v", service, err),
				Do: "run `workshop down`, then `workshop up`",
			}
		}
	}
	return goOn, nil
}

// writes reports whether a container may write to files of this machine; one that
// the file doesn't have any more may.
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
