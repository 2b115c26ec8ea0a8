package docker

import (
	"bufio"
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
	conn, err := e.cli.Dialer()(ctx)
	if err != nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "POST /containers/"+url.PathEscape(id)+"/attach?stream=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: docker\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); err != nil {
		return ""
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var body struct {
		Message string `json:"message"`
	}
	if resp.StatusCode < http.StatusBadRequest || json.NewDecoder(io.LimitReader(resp.Body, maxWhy)).Decode(&body) != nil {
		return ""
	}
	return body.Message
}
