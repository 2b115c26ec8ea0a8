package docker

import (
	"context"
	"io"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Control connects to the guard's control socket by `workshop-init connect` in the
// guard's container, because the socket is in the guard's own tmpfs.
func (e *Engine) Control(ctx context.Context, project, dir string) (io.ReadWriteCloser, error) {
	c, err := e.one(ctx, project, compose.GuardService)
	if err != nil {
		return nil, err
	}
	if dir != "" && c.Directory != "" && c.Directory != dir {
		return nil, engine.NewForeignError(project, dir, c.Directory)
	}
	if c.State != "running" {
		return nil, &engine.NotRunningError{Project: project, Services: []string{compose.GuardService}, State: c.State}
	}
	return e.dialControl(ctx, c.ID)
}

// dialControl connects to the guard in a container, which sends JSON. The
// connection ends with the container's main process, or when ctx does.
func (e *Engine) dialControl(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	return e.dialExec(ctx, id, []string{compose.ImageInit, "connect"}, func(first byte) bool { return first == '{' })
}
