package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/door"
)

// Session connects to the toolbox of a worker: through its door where the
// engine is on this machine, else by `workshop-init tools` that the engine
// starts.
//
// A shell's commands wait for this, so the engine is asked once.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	w, err := e.look(ctx, project, service)
	if err != nil {
		return nil, err
	}
	c := w.container
	switch {
	case dir != "" && c.Directory != "" && c.Directory != dir:
		return nil, engine.NewForeignError(project, "container/"+c.Name, dir, c.Directory)
	case c.State != "running":
		return nil, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	case c.Role == "room" || c.Role == "guard":
		return nil, fmt.Errorf("%s is the workshop's %s, and commands run in workers only", service, c.Role)
	}
	if w.door != "" && e.endpoint.socket() != "" && !doorIsGone(w) {
		conn, err := door.Accept(ctx, w.door, w.pid)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// The directory is gone, or the engine sees another machine or other
		// process numbers: it can carry the session itself.
	}
	conn, err := e.dialExec(ctx, c.ID, []string{compose.InitPath, "tools"}, isFrame)
	if err != nil {
		return nil, err
	}
	conn.detach()
	return &sessionConn{execConn: conn, worker: service}, nil
}

// doorIsGone tells whether the worker has another directory than the one that
// the name means now: the user's runtime directory goes with the last login, and
// the next `up` makes it anew, while the worker runs on. Nobody would come to a
// door there. What can't be read is no reason.
func doorIsGone(w worker) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.pid) + "/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /point … (proc_pid_mountinfo(5)); the root of one that
		// was removed ends in //deleted.
		if f := strings.Fields(line); len(f) > 4 && f[4] == compose.DoorDir {
			return path.Base(f[3]) != filepath.Base(w.door)
		}
	}
	return false
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
