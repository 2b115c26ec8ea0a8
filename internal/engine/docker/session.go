package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Session connects to the toolbox of a worker: through its door where the
// engine is on this machine, else by `workshop-init tools` that the engine
// starts.
//
// A shell's commands wait for this, so the engine is asked once.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	w, err := e.running(ctx, project, service, dir)
	if err != nil {
		return nil, err
	}
	if conn, err := e.enter(ctx, w); conn != nil || err != nil {
		return conn, err
	}
	conn, err := e.dialExec(ctx, w.container.ID, []string{compose.InitPath, "tools"}, isFrame)
	if err != nil {
		return nil, err
	}
	conn.detach()
	return &sessionConn{execConn: conn, worker: service}, nil
}

// running returns a worker that runs. dir as in [engine.ExecOptions].
func (e *Engine) running(ctx context.Context, project, service, dir string) (worker, error) {
	w, err := e.look(ctx, project, service)
	if err != nil {
		return w, err
	}
	c := w.container
	switch {
	case dir != "" && c.Directory != "" && c.Directory != dir:
		return w, engine.NewForeignError(project, "container/"+c.Name, dir, c.Directory)
	case c.State != "running":
		return w, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	case c.Role == compose.RoleRoom.String() || c.Role == compose.RoleGuard.String():
		return w, fmt.Errorf("%s is the workshop's %s, and commands run in workers only", service, c.Role)
	}
	return w, nil
}

// knocks is how often a worker is waited for at its door ([dialin.Wait]).
const knocks = 5

// enter connects through a worker's door. It returns nil where there is none, or
// nobody can tell: the engine can carry the session itself then.
//
// Where there is one, the engine isn't asked instead: the worker could stop what
// the engine starts there, and some versions then never answer again for the
// container.
func (e *Engine) enter(ctx context.Context, w worker) (net.Conn, error) {
	state := e.dialInOf(w)
	if state == dialInGone {
		return nil, nil
	}
	var err error
	for range knocks {
		var conn net.Conn
		if conn, err = dialin.Accept(ctx, w.door, w.pid); err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if state != dialInHere { // it may be another machine's
			return nil, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) { // else it is taken for a command that isn't found
		err = errors.New("its directory is gone")
	}
	name := w.container.Service
	return nil, fmt.Errorf("the door of worker %s: %w; a limit of the worker may be reached (resources.pids, resources.memory): `workshop restart %s` ends what runs there", name, err, name)
}

// dialInState is what this machine knows of a worker's door.
type dialInState int

const (
	dialInUnknown dialInState = iota
	dialInHere
	dialInGone
)

// dialInOf reports whether the worker has the directory that its door's name means
// now: the user's runtime directory goes with the last login, and the next `up`
// makes it anew, while the worker runs on. Nobody would come to a door there.
func (e *Engine) dialInOf(w worker) dialInState {
	if w.door == "" || e.endpoint.socket() == "" {
		return dialInGone
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.pid) + "/mountinfo")
	if err != nil {
		// Where /proc shows everybody's processes, and not this one, the engine has
		// other process numbers. With hidepid (proc(5)) a worker's is not shown.
		if _, shown := os.Stat("/proc/1"); errors.Is(err, os.ErrNotExist) && shown == nil {
			return dialInGone
		}
		return dialInUnknown
	}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /point … (proc_pid_mountinfo(5)); the root of one that
		// was removed ends in //deleted.
		if f := strings.Fields(line); len(f) > 4 && f[4] == compose.DialInDir {
			if path.Base(f[3]) == filepath.Base(w.door) {
				return dialInHere
			}
			return dialInGone
		}
	}
	return dialInGone // another process has the number here
}

// isFrame tells the toolbox's first byte, the kind of a frame (package wire),
// from the words of an engine that could not start it.
func isFrame(first byte) bool { return first == 0 }

// sessionConn knows what it means that a toolbox isn't there.
type sessionConn struct {
	*execConn
	worker string
}

func (c *sessionConn) Read(p []byte) (int, error) {
	n, err := c.execConn.Read(p)
	if said, ok := errors.AsType[*saidError](err); ok && strings.Contains(said.text, `unknown command "tools"`) {
		err = &engine.NoToolboxError{Worker: c.worker}
	}
	return n, err
}
