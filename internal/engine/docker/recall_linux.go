package docker

import (
	"context"
	"net"
	"strconv"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// recall connects to a worker that an earlier command has asked the engine for, as long as
// its main process is the same one on this machine. The engine, which takes longer to answer
// than the worker, is asked when it isn't: user is as in [sameUser], dir as in
// [engine.ExecOptions].
func (e *Engine) recall(ctx context.Context, project, service, dir, user string) net.Conn {
	p := e.opts.Compared.Process(project, service)
	if p == nil || dir != "" && dir != p.Directory || e.endpoint.socket() == "" || !isDoor(p.DialIn, project, service) {
		return nil
	}
	if _, same := sameUser(user, p.User); !same {
		return nil
	}
	if now, running := startOfProcess(p.PID); !running || now != p.Start || e.dialInOf(worker{pid: p.PID, dialIn: p.DialIn}) != dialInHere {
		return nil
	}
	conn, err := dialin.Accept(ctx, p.DialIn, p.PID)
	if err != nil { // the engine knows if it is paused
		return nil
	}
	return conn
}

// remember notes a worker of this machine.
func (e *Engine) remember(project string, w worker) {
	start, running := startOfProcess(w.pid)
	if !running {
		return
	}
	// If this fails, the next command asks the engine, too.
	_ = e.opts.Compared.KeepProcess(project, w.container.Service, w.start, engine.Process{
		PID: w.pid, Start: start, User: w.user, DialIn: w.dialIn, Directory: w.container.Directory,
	})
}

// startOfProcess names a process that runs: no other one, since this machine was installed,
// has its number and this name.
func startOfProcess(pid int) (start string, running bool) {
	i, ok := reaper.Look(strconv.Itoa(pid))
	if !ok || i.Ended() {
		return "", false
	}
	return strconv.FormatUint(i.Start, 10) + " " + made.BootID(), true
}
