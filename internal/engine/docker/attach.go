package docker

import (
	"context"
	"net/url"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// attach attaches to the output of a container. podman initialises it by that, and an error
// is one of the creation.
func (e *Engine) attach(ctx context.Context, id string) (types.HijackedResponse, error) {
	return e.upgrade(ctx, "/containers/"+url.PathEscape(id)+"/attach?stream=1&stdout=1&stderr=1", nil)
}

// execAttach starts the program of an exec, and attaches to it.
func (e *Engine) execAttach(ctx context.Context, id string, o container.ExecAttachOptions) (types.HijackedResponse, error) {
	return e.upgrade(ctx, "/exec/"+url.PathEscape(id)+"/start", o)
}
