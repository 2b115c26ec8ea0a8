package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/wire"
)

// runIn runs a command in a worker: in a session with its toolbox, which takes
// a fraction of the time that an engine needs, or, for another user, by the
// engine.
func (a *program) runIn(ctx context.Context, e *app.Running, worker string, run engine.ExecOptions) (int, error) {
	if run.User != "" {
		return e.Exec(ctx, e.Name, worker, run)
	}
	conn, err := e.Session(ctx, e.Name, worker, run.Directory)
	if err != nil {
		return 0, err
	}
	return client.Exec(ctx, conn, client.Command{
		Argv: run.Command, Env: run.Env, Cwd: run.Workdir,
		Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr, Signals: run.Signals,
		TTY: run.TTY, Size: run.Size, Resized: run.Resized,
	})
}

// sessionFailure knows why a session runs no command, or lost it.
func sessionFailure(err error, worker, program, workdir string) *app.Failure {
	if e, ok := errors.AsType[*engine.NoToolboxError](err); ok {
		return app.Fail(app.CodeExecFailed, "%w", e)
	}
	if lost, ok := errors.AsType[*wire.LostError](err); ok {
		return app.Fail(app.CodeExecFailed, "the connection to %s was lost while %s ran: %w", worker, program, lost.Cause).
			Hint("`workshop ps` tells whether the worker runs; what the command did until then is done")
	}
	e, ok := errors.AsType[*client.ExecError](err)
	switch {
	case !ok:
		return nil
	case e.Code == 127:
		return app.Fail(127, "%s: not found in the worker", program)
	case e.Code == 126:
		return app.Fail(126, "%s: can't be executed in the worker", program)
	}
	if refused, ok := errors.AsType[*wire.Error](err); ok {
		if reason, ok := strings.CutPrefix(refused.Message, "cwd "); ok && workdir != "" {
			return app.Fail(app.CodeExecFailed, "--workdir %s", reason)
		}
		if strings.HasPrefix(refused.Message, "workdir ") {
			return app.Fail(app.CodeExecFailed, "%s: %w", program, e).Hint("look from another directory: `workshop exec -w / %s -- ls -la`", worker)
		}
	}
	return app.Fail(app.CodeExecFailed, "%s: %w", program, e)
}
