package docker

import (
	"context"
	"io"

	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
)

// CopyTo unpacks a tar stream in a directory of a worker, as its user. The
// engine's own archive is no way: it opens what the worker has put there, holds
// the container's lock meanwhile, and waits for ever at a FIFO.
func (e *Engine) CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return err
	}
	return toolbox.CopyTo(ctx, conn, dir, tar)
}

// CopyFrom returns a tar stream of a file or directory of a worker, as far as its
// user can read it.
func (e *Engine) CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error) {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return nil, err
	}
	return toolbox.CopyFrom(ctx, conn, path)
}
