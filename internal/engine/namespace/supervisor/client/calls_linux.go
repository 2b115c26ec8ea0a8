package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// Hello tells who answers.
func (c *Client) Hello(ctx context.Context) (*api.Hello, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpHello})
	if err != nil {
		return nil, err
	}
	if a.Hello == nil {
		return nil, errors.New("the supervisor doesn't say who it is")
	}
	return a.Hello, nil
}

// List returns every container, by the names of their services.
func (c *Client) List(ctx context.Context) ([]api.Seen, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpList})
	if err != nil {
		return nil, err
	}
	return a.List, nil
}

// Create makes a container known, which then can be started.
func (c *Client) Create(ctx context.Context, container *spec.Container) error {
	return c.do(ctx, api.Request{Op: api.OpCreate, Container: container})
}

// Start starts a service and returns when its program was executed. One that
// runs is left alone.
func (c *Client) Start(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpStart, Service: service})
}

// Ready waits until a service said that it is ready, or can't be, or ended.
func (c *Client) Ready(ctx context.Context, service string) (*api.Ready, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpReady, Service: service})
	if err != nil {
		return nil, err
	}
	if a.Ready == nil {
		return nil, errors.New("the supervisor doesn't say whether it is ready")
	}
	return a.Ready, nil
}

// Signal sends a signal, "SIGTERM", to a service's main process.
func (c *Client) Signal(ctx context.Context, service, signal string) error {
	return c.do(ctx, api.Request{Op: api.OpSignal, Service: service, Signal: signal})
}

// Stop ends a service by SIGTERM, its grace and SIGKILL, and returns when
// nothing of it runs. When ctx ends, it is stopped all the same.
func (c *Client) Stop(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpStop, Service: service})
}

// Remove stops a service and forgets it, with its log.
func (c *Client) Remove(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpRemove, Service: service})
}

// Pid returns a descriptor of a service's main process (pidfd_open(2)), which
// the caller closes, and the process's number for the caller. The number is the
// process's as long as the descriptor's poll doesn't say that it ended.
func (c *Client) Pid(ctx context.Context, service string) (pid int, pidfd *os.File, err error) {
	_, f, err := c.call(ctx, api.Request{Op: api.OpPid, Service: service})
	if err != nil {
		return 0, nil, err
	}
	if f == nil {
		return 0, nil, errors.New("the supervisor sent no descriptor")
	}
	if pid, err = Number(f); err != nil {
		f.Close()
		return 0, nil, err
	}
	return pid, f, nil
}

// Number is the number that the process of a pidfd has in the pid namespace of
// the caller (proc_pid_fdinfo(5)).
func Number(pidfd *os.File) (int, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(pidfd.Fd())))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(text))
			switch {
			case err != nil:
				return 0, err
			case pid == -1:
				return 0, os.ErrProcessDone
			case pid <= 0:
				return 0, errors.New("the process has no number here")
			}
			return pid, nil
		}
	}
	return 0, errors.New("the descriptor is none of a process")
}

// Control returns a connection to the control of the guard (package
// guard/control). The service may be empty where there is one guard.
func (c *Client) Control(ctx context.Context, service string) (net.Conn, error) {
	_, f, err := c.call(ctx, api.Request{Op: api.OpControl, Service: service})
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errors.New("the supervisor sent no descriptor")
	}
	defer f.Close()
	return net.FileConn(f)
}

// Shutdown stops everything and ends the supervisor; it returns when that is
// gone.
func (c *Client) Shutdown(ctx context.Context) error {
	err := c.do(ctx, api.Request{Op: api.OpShutdown})
	var told *api.Error
	if errors.Is(err, ErrNone) || ctx.Err() != nil {
		return err
	}
	for {
		lives, e := Lives(c.dir)
		switch {
		case e != nil:
			return e
		case !lives && errors.As(err, &told):
			return told
		case !lives: // also when it was gone before it could answer
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the supervisor doesn't end: %w", context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (c *Client) do(ctx context.Context, r api.Request) error {
	_, err := c.plain(ctx, r)
	return err
}

// plain is a call whose answer carries no descriptor.
func (c *Client) plain(ctx context.Context, r api.Request) (*api.Answer, error) {
	a, f, err := c.call(ctx, r)
	if f != nil {
		f.Close()
	}
	return a, err
}
