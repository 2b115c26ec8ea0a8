package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
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

// Hello returns the supervisor's identity.
func (c *Client) Hello(ctx context.Context) (*api.Hello, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpHello})
	if err != nil {
		return nil, err
	}
	if a.Hello == nil {
		return nil, errors.New("the supervisor's response lacks hello")
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

// Create adds a container, which can then be started. It returns a [StoredError] if the
// supervisor has it otherwise.
func (c *Client) Create(ctx context.Context, container *spec.Container) error {
	sent, err := json.Marshal(container)
	if err != nil {
		return err
	}
	// In these words, of which the supervisor's answer has the sum.
	a, _, err := c.send(ctx, container.Service, append(append([]byte(`{"op":"`+api.OpCreate+`","container":`), sent...), '}'))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(sent); bytes.Equal(a.Sum, sum[:]) {
		return nil
	}
	other := &StoredError{Sent: sent}
	all, err := c.List(ctx)
	for i := range all {
		if err == nil && all[i].Container.Service == container.Service {
			other.Stored, err = json.Marshal(&all[i].Container)
		}
	}
	if err != nil {
		return err
	}
	return other
}

// StoredError means that a supervisor has a container otherwise than it was sent, as one of
// another build may. Both are as JSON; Stored is nil if the supervisor doesn't list it.
type StoredError struct{ Sent, Stored json.RawMessage }

func (e *StoredError) Error() string {
	return "the supervisor has the container otherwise than it was sent"
}

// Start starts a service and returns once its program is executed. It does nothing
// if the service is running.
func (c *Client) Start(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpStart, Service: service})
}

// Ready waits until a service is ready, failed or ended.
func (c *Client) Ready(ctx context.Context, service string) (*api.Ready, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpReady, Service: service})
	if err != nil {
		return nil, err
	}
	if a.Ready == nil {
		return nil, errors.New("the supervisor's response lacks ready")
	}
	return a.Ready, nil
}

// Wait waits until a service has ended and isn't restarted, or is removed, and returns
// its exit code.
func (c *Client) Wait(ctx context.Context, service string) (int, error) {
	a, err := c.plain(ctx, api.Request{Op: api.OpWait, Service: service})
	if err != nil {
		return 0, err
	}
	if a.Ready == nil {
		return 0, errors.New("the supervisor's response lacks the end")
	}
	return a.Ready.ExitCode, nil
}

// Signal sends a signal, "SIGTERM", to a service's main process.
func (c *Client) Signal(ctx context.Context, service, signal string) error {
	return c.do(ctx, api.Request{Op: api.OpSignal, Service: service, Signal: signal})
}

// Stop ends a service by SIGTERM and, after its grace period, SIGKILL, and waits
// for the end of all its processes. The end of ctx doesn't cancel the stop.
func (c *Client) Stop(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpStop, Service: service})
}

// Remove stops a service and removes it with its log.
func (c *Client) Remove(ctx context.Context, service string) error {
	return c.do(ctx, api.Request{Op: api.OpRemove, Service: service})
}

// Pid returns a pidfd of a service's main process (pidfd_open(2)), which the caller
// closes, and its PID in the caller's namespace. The PID is valid until poll of the
// descriptor reports the end.
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

// Number returns the PID of a pidfd's process in the caller's pid namespace
// (proc_pid_fdinfo(5)).
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
				return 0, errors.New("the process has no PID in this namespace")
			}
			return pid, nil
		}
	}
	return 0, errors.New("the descriptor is not a pidfd")
}

// Control returns a connection to the guard's control (package guard/control). The
// service may be empty if there is one guard.
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

// Shutdown stops everything and ends the supervisor, and waits for its end.
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
		case !lives: // also if it ended before it could respond
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

// plain is a call without a descriptor in the response.
func (c *Client) plain(ctx context.Context, r api.Request) (*api.Answer, error) {
	a, f, err := c.call(ctx, r)
	if f != nil {
		f.Close()
	}
	return a, err
}
