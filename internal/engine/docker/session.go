package docker

import (
	"context"
	"errors"
	"io"
)

// Session connects to the toolbox of a worker.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	return nil, errors.New("not built")
}
