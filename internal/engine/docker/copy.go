package docker

import (
	"context"
	"io"

	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
)

// CopyTo extracts a tar stream into a directory of a worker, as its user. The
// engine's archive API is unsuitable: it opens files that the worker controls while
// it holds the container's lock, and blocks on a FIFO.
func (e *Engine) CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return err
	}
	return toolbox.CopyTo(ctx, conn, dir, tar)
}

// CopyFrom returns a tar stream of a file or directory of a worker, with what its
// user can read.
func (e *Engine) CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error) {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return nil, err
	}
	return toolbox.CopyFrom(ctx, conn, path)
}
