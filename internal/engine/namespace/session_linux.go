package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Session connects to the toolbox of a worker by its dial-in socket, the only way
// into it.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	s, err := e.worker(ctx, project, service, dir)
	if err != nil {
		return nil, err
	}
	return e.enter(ctx, project, &s)
}

// worker returns a running worker.
func (e *Engine) worker(ctx context.Context, project, service, dir string) (api.Seen, error) {
	s, err := e.one(ctx, project, service, dir)
	switch {
	case err != nil:
		return s, err
	case s.Container.Role != spec.Worker:
		return s, fmt.Errorf("%s is a %s, and commands run in workers only", service, s.Container.Role)
	case s.State != api.Running:
		c := engine.Container{Role: string(s.Container.Role), State: string(s.State), ExitCode: s.ExitCode}
		return s, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State, Why: c.WhyEnded()}
	case !s.Ready:
		return s, fmt.Errorf("worker %s is not ready yet: `workshop up` waits for it, `workshop logs %s` shows its output", service, service)
	case !e.isCompared(project, &s):
		return s, engine.RefuseNotCompared(service)
	}
	return s, nil
}

// enter connects to the dial-in socket of a worker.
func (e *Engine) enter(ctx context.Context, project string, s *api.Seen) (net.Conn, error) {
	service := s.Container.Service
	i := slices.IndexFunc(s.Container.Mounts, func(m spec.Mount) bool {
		return m.Type == spec.Bind && m.Target == compose.DialInDir && m.ReadOnly
	})
	if i < 0 {
		return nil, fmt.Errorf("worker %s has no dial-in directory: run `workshop up`", service)
	}
	c, err := e.find(ctx, project)
	if err != nil {
		return nil, err
	}
	stopped := &engine.NotRunningError{Project: project, Services: []string{service}}
	if c == nil {
		return nil, stopped
	}
	pid, pidfd, err := c.Pid(ctx, service)
	if err != nil {
		if notRunning(err) || e.hasEnded(ctx, project, err) {
			err = stopped
		}
		return nil, err
	}
	defer pidfd.Close() // until then the PID can't be reused
	conn, err := dialin.Accept(ctx, s.Container.Mounts[i].Source, pid)
	if err != nil && ctx.Err() == nil {
		if _, err := e.worker(ctx, project, service, ""); err != nil {
			return nil, err // it has ended in the meantime
		}
		if errors.Is(err, os.ErrNotExist) { // else it would look like a command not found
			err = errors.New("its directory no longer exists")
		}
		return nil, fmt.Errorf("connect to worker %s: %w: `workshop ps` shows whether it runs, `workshop restart %s` recreates its socket", service, err, service)
	}
	return conn, err
}

// notRunning reports whether a request failed because the service has ended.
func notRunning(err error) bool {
	told, ok := errors.AsType[*api.Error](err)
	return ok && (told.Code == api.CodeNotRunning || told.Code == api.CodeUnknown) || errors.Is(err, os.ErrProcessDone)
}

// Control connects to the guard's control: the supervisor passes it a new
// connection.
func (e *Engine) Control(ctx context.Context, project, dir string) (io.ReadWriteCloser, error) {
	s, err := e.one(ctx, project, compose.GuardService, dir)
	if err != nil {
		return nil, err
	}
	if s.State != api.Running {
		return nil, &engine.NotRunningError{Project: project, Services: []string{compose.GuardService}, State: string(s.State)}
	}
	return e.control(ctx, project)
}

// control connects to the running guard. The connection ends with ctx.
func (e *Engine) control(ctx context.Context, project string) (io.ReadWriteCloser, error) {
	c, err := e.find(ctx, project)
	if err != nil {
		return nil, err
	}
	stopped := &engine.NotRunningError{Project: project, Services: []string{compose.GuardService}}
	if c == nil {
		return nil, stopped
	}
	conn, err := c.Control(ctx, compose.GuardService)
	if err != nil {
		if notRunning(err) || e.hasEnded(ctx, project, err) {
			err = stopped
		}
		return nil, err
	}
	return &bound{Conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

// bound is a connection that ends with a context.
type bound struct {
	net.Conn
	stop func() bool
}

// Close closes the connection.
func (b *bound) Close() error {
	b.stop()
	return b.Conn.Close()
}

// Exec runs a command in its own session. A worker has one user: no process below
// its supervisor can change to another.
func (e *Engine) Exec(ctx context.Context, project, service string, o engine.ExecOptions) (int, error) {
	s, err := e.worker(ctx, project, service, o.Directory)
	if err != nil {
		return toolbox.ExitOurs, err
	}
	if p := s.Container.Process; o.User != "" {
		uid, gid, ok := numeric(o.User)
		if n, only := id(o.User); only {
			uid, gid, ok = n, p.GID, true
		}
		if !ok || uid != p.UID || gid != p.GID {
			return toolbox.ExitOurs, &engine.RefusedError{
				Promise: "B4", Reason: fmt.Sprintf("a command can't run as %s in %s: on the namespace engine a worker has one user, %d:%d", o.User, service, p.UID, p.GID),
				Do: "omit --user",
			}
		}
	}
	conn, err := e.enter(ctx, project, &s)
	if err != nil {
		return toolbox.ExitOurs, err
	}
	return toolbox.Exec(ctx, conn, o.ToolboxCommand())
}

// CopyTo extracts a tar stream into a directory of a worker, as its user.
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
