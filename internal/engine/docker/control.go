package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Control connects to the guard's control socket: by `workshop-init connect` in
// the guard's container, because the socket lies in the guard's own tmpfs.
func (e *Engine) Control(ctx context.Context, project, dir string) (io.ReadWriteCloser, error) {
	c, err := e.one(ctx, project, compose.GuardService)
	if err != nil {
		return nil, err
	}
	if dir != "" && c.Directory != "" && c.Directory != dir {
		return nil, engine.NewForeignError(project, "container/"+c.Name, dir, c.Directory)
	}
	if c.State != "running" {
		return nil, &engine.NotRunningError{Project: project, Services: []string{compose.GuardService}, State: c.State}
	}
	return e.dialControl(ctx, c.ID)
}

// dialControl connects to the guard in a container. The connection ends with
// the container's main process, or when ctx does.
func (e *Engine) dialControl(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	made, err := e.cli.ContainerExecCreate(ctx, id, container.ExecOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: []string{compose.ImageInit, "connect"},
	})
	if err != nil {
		return nil, e.execError(err)
	}
	conn, err := e.cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, e.execError(err)
	}
	r, w := io.Pipe()
	go func() {
		var problem bytes.Buffer
		_, err := stdcopy.StdCopy(&answers{w: w, problem: &problem}, &problem, conn.Reader)
		if text := strings.TrimSpace(problem.String()); err == nil && text != "" {
			err = errors.New(text)
		}
		if err == nil {
			err = io.EOF
		}
		w.CloseWithError(err)
	}()
	stop := context.AfterFunc(ctx, conn.Close)
	return &controlConn{Reader: r, Writer: conn.Conn, close: func() error {
		stop()
		conn.Close()
		return r.Close()
	}}, nil
}

// answers passes what a guard says, which is JSON. Where the command can't be
// started, the engine says so in its place.
type answers struct {
	w       io.Writer
	problem *bytes.Buffer
	begun   bool
}

func (a *answers) Write(b []byte) (int, error) {
	if !a.begun && len(b) > 0 && b[0] != '{' {
		return a.problem.Write(b)
	}
	a.begun = true
	return a.w.Write(b)
}

type controlConn struct {
	io.Reader
	io.Writer
	close func() error
}

func (c *controlConn) Close() error {
	if err := c.close(); err != nil {
		return fmt.Errorf("the guard's control: %w", err)
	}
	return nil
}
