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
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Session connects to the toolbox of a worker: by its dial-in socket if the engine
// is local, else by an exec of `workshop-init tools`.
//
// It makes a single request to the engine, because every `exec` waits for it, and none
// where an earlier command has made it.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	if conn := e.recall(ctx, project, service, dir, ""); conn != nil {
		return conn, nil
	}
	w, err := e.running(ctx, project, service, dir)
	if err != nil {
		return nil, err
	}
	if conn, err := e.enter(ctx, project, w); conn != nil || err != nil {
		return conn, err
	}
	conn, err := e.dialExec(ctx, w.container.ID, []string{compose.InitPath, "tools"}, isFrame)
	if err != nil {
		return nil, err
	}
	conn.detach()
	s := &sessionConn{execConn: conn, worker: service}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go e.endWith(watch, w.container.ID, s)
	return s, nil
}

// endWith ends a session that the engine carries once its container has ended: of a worker
// on gVisor that was killed, Docker keeps the stream open.
func (e *Engine) endWith(ctx context.Context, id string, s *sessionConn) {
	ended, failed := e.cli.ContainerWait(ctx, id, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case <-failed:
		return
	}
	select { // what it wrote before may be on its way
	case <-time.After(endTime):
		s.cut()
	case <-ctx.Done():
	}
}

// running returns a running worker. dir is as in [engine.ExecOptions].
func (e *Engine) running(ctx context.Context, project, service, dir string) (worker, error) {
	w, err := e.look(ctx, project, service)
	if err != nil {
		return w, err
	}
	c := w.container
	switch {
	case dir != "" && c.Directory != "" && c.Directory != dir:
		return w, engine.NewForeignError(project, dir, c.Directory)
	case c.State != "running":
		return w, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State, Why: c.WhyEnded()}
	case !compose.IsWorkers(c.Role):
		return w, fmt.Errorf("%s is a %s, and commands run in workers only", service, c.Role)
	}
	noted, compared := e.opts.Compared.Sources(project, service, w.start)
	if !c.ByCompose && !compared { // plain Compose compares nothing
		return w, engine.RefuseNotCompared(service)
	}
	if targets := engine.Replaced(noted); len(targets) > 0 {
		return w, engine.RefuseReplaced(service, targets)
	}
	return w, nil
}

// tries is how often a connection to the dial-in socket is tried ([dialin.Wait]).
const tries = 5

// enter connects by a worker's dial-in socket. It returns nil if there is none, or
// if that is unknown: then the engine can carry the session.
//
// If there is one, the engine isn't a fallback: the worker could stop the process
// that the engine starts, and some versions then never respond again about the
// container.
func (e *Engine) enter(ctx context.Context, project string, w worker) (net.Conn, error) {
	state := e.dialInOf(w)
	if state == dialInGone {
		return nil, nil
	}
	var err error
	for range tries {
		var conn net.Conn
		if conn, err = dialin.Accept(ctx, w.dialIn, w.pid); err == nil {
			if state == dialInHere {
				e.remember(project, w)
			}
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if state != dialInHere { // it may be another machine's
			return nil, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) { // else it would look like a command not found
		err = errors.New("its directory no longer exists")
	}
	name := w.container.Service
	return nil, fmt.Errorf("connect to worker %s: %w; it may have reached a limit (resources.pids, resources.memory): `workshop restart %s` ends its processes", name, err, name)
}

// dialInState is the state of a worker's dial-in directory on this machine.
type dialInState int

const (
	dialInUnknown dialInState = iota
	dialInHere
	dialInGone
)

// dialInOf reports whether the worker's dial-in directory is still the one at its
// path: the user's runtime directory is removed at the last logout, and the next
// `up` recreates it while the worker keeps running. Its socket can't be reached then.
func (e *Engine) dialInOf(w worker) dialInState {
	if w.dialIn == "" || e.endpoint.socket() == "" {
		return dialInGone
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.pid) + "/mountinfo")
	if err != nil {
		// If /proc shows the processes of all users, but not this one, the engine is in
		// another PID namespace. With hidepid (proc(5)) a worker's isn't shown.
		if _, shown := os.Stat("/proc/1"); errors.Is(err, os.ErrNotExist) && shown == nil {
			return dialInGone
		}
		return dialInUnknown
	}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /point … (proc_pid_mountinfo(5)); the root of one that
		// was removed ends in //deleted.
		if f := strings.Fields(line); len(f) > 4 && f[4] == compose.DialInDir {
			if path.Base(f[3]) == filepath.Base(w.dialIn) {
				return dialInHere
			}
			return dialInGone
		}
	}
	return dialInGone // another process has this PID here
}

// isFrame distinguishes the toolbox's first byte, the kind of a frame (package
// wire), from the message of an engine that couldn't start it.
func isFrame(first byte) bool { return first == 0 }

// sessionConn turns the error of a missing toolbox into a [engine.NoToolboxError].
type sessionConn struct {
	*execConn
	worker string
	stop   func() // of the look at its container
}

func (c *sessionConn) Close() error {
	c.stop()
	return c.execConn.Close()
}

func (c *sessionConn) Read(p []byte) (int, error) {
	n, err := c.execConn.Read(p)
	if said, ok := errors.AsType[*saidError](err); ok && strings.Contains(said.text, `unknown command "tools"`) {
		err = &engine.NoToolboxError{Worker: c.worker}
	}
	return n, err
}
