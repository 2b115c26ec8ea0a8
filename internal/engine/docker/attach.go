package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// attach attaches to the output of a container. podman initialises it by that, and an error
// is one of the creation: the client drops the body of the response that says which
// (docker: client/hijack.go), so that the engine is asked again without an upgrade.
func (e *Engine) attach(ctx context.Context, id string) (types.HijackedResponse, error) {
	conn, err := e.cli.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err == nil || !strings.Contains(err.Error(), "unable to upgrade") {
		return conn, err
	}
	if why := e.whyNotAttached(ctx, id); why != "" {
		err = errors.New(why)
	}
	return conn, err
}

// maxWhy bounds a response, in bytes, and askWhy the time for it.
const (
	maxWhy = 64 << 10
	askWhy = 5 * time.Second
)

// whyNotAttached returns the message of the engine; "" if it has none.
func (e *Engine) whyNotAttached(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, askWhy)
	defer cancel()
	var body struct {
		Message string `json:"message"`
	}
	err := e.request(ctx, http.MethodPost, "/containers/"+url.PathEscape(id)+"/attach?stream=1&stdout=1&stderr=1", func(resp *http.Response) error {
		if resp.StatusCode < http.StatusBadRequest {
			return nil // there is nothing to say
		}
		return json.NewDecoder(io.LimitReader(resp.Body, maxWhy)).Decode(&body)
	})
	if err != nil {
		return ""
	}
	return body.Message
}
