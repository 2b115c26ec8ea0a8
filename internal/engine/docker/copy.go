package docker

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// CopyTo unpacks a tar stream in a directory of a worker. It must be inside a
// mount that is writable: the root file system is read-only.
func (e *Engine) CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return err
	}
	err = e.cli.CopyToContainer(ctx, c.ID, dir, tar, container.CopyToContainerOptions{})
	return copyError(service, dir, e.explain(err))
}

// CopyFrom returns a tar stream of a file or directory of a worker; its first
// entry has the base name of the path.
func (e *Engine) CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error) {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return nil, err
	}
	r, _, err := e.cli.CopyFromContainer(ctx, c.ID, path)
	return r, copyError(service, path, e.explain(err))
}

// copyError adds what to do; what isn't there is fs.ErrNotExist. Tmpfs is not reached: it is mounted in the
// container's own mount namespace, and the engine sees the read-only root
// below it.
func copyError(service, path string, err error) error {
	switch {
	case cerrdefs.IsNotFound(err):
		return fmt.Errorf("%s in %s: %w", path, service, fs.ErrNotExist)
	case err != nil && strings.Contains(err.Error(), "read-only"):
		return fmt.Errorf("%w: the engine reaches rw mounts only; into tmpfs (/tmp, /scratch, the home directory) pipe it, as in `workshop exec %s -- sh -c 'cat > %s/FILE' < FILE`", err, service, path)
	}
	return err
}
