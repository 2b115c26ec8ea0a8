package docker

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// Wait is the engine's own.
func (e *Engine) Wait(ctx context.Context, project, service, dir string) (int, error) {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return 0, err
	}
	if dir != "" && c.Directory != "" && c.Directory != dir {
		return 0, engine.NewForeignError(project, dir, c.Directory)
	}
	if c.State == "created" {
		return 0, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	}
	ended, failed := e.cli.ContainerWait(ctx, c.ID, container.WaitConditionNotRunning)
	select {
	case r := <-ended:
		return int(r.StatusCode), nil
	case err := <-failed:
		if cerrdefs.IsNotFound(err) { // removed before the request
			return 0, &engine.NotRunningError{Project: project, Services: []string{service}}
		}
		return 0, e.explain(err)
	}
}
