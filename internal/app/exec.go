package app

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/workshop"
)

// Exec runs a command in a worker and returns its exit code. A NAME alone in
// run.Env passes the caller's value on, if there is one. attach prepares it for the
// caller's terminal, and detach undoes that as soon as the command has ended. signs
// take what the worker says of the end.
func (env *Env) Exec(ctx context.Context, r *Running, worker string, run engine.ExecOptions, signs *Signs, attach func(*engine.ExecOptions) (detach func(), err error)) (int, error) {
	run.Directory = r.Dir
	var variables []string
	for _, variable := range run.Env {
		if name, _, given := strings.Cut(variable, "="); !given {
			value, ok := env.Lookup(name)
			if !ok {
				continue
			}
			variable = name + "=" + value
		}
		variables = append(variables, variable)
	}
	run.Env = variables
	env.sayLearning(ctx, r, worker)
	detach, err := attach(&run)
	if err != nil {
		return 0, err
	}
	code, err := runIn(ctx, r, worker, run, signs)
	detach()
	switch {
	case err != nil && r.run != nil:
		return 0, env.runError(ctx, err, r, worker, run.Command[0], run.Workdir)
	case err != nil:
		return 0, env.execError(ctx, err, r, worker, run.Command[0], run.Workdir)
	}
	return code, nil
}

// CheckUser refuses a user for a command in a worker that isn't "", UID or UID:GID,
// or that nothing in a worker may be.
func CheckUser(user string) error {
	if isRoot(user) {
		return Fail(CodeRefused, "exec: --user %s: nothing runs as root in a worker (B4)", user)
	}
	if isReserved(user) {
		return Fail(CodeRefused, "exec: --user %s: the guard or the outlet has that id, and nothing in a worker may (B60)", user)
	}
	if !numericUser(user) {
		return Fail(CodeExecFailed, "exec: --user %q is not uid or uid:gid in numbers", user)
	}
	return nil
}

// isRoot reports whether a user is "0" or "root", with or without a group.
func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	return name == "root" || name != "" && strings.Trim(name, "0") == ""
}

// isReserved reports whether a user has an id of the guard or the outlet, as uid or gid.
func isReserved(user string) bool {
	for part := range strings.SplitSeq(user, ":") {
		if n, err := strconv.ParseUint(part, 10, 31); err == nil && workshop.ReservedID(int(n)) {
			return true
		}
	}
	return false
}

// numericUser reports whether a user is "", UID or UID:GID.
func numericUser(user string) bool {
	if user == "" {
		return true
	}
	uid, gid, both := strings.Cut(user, ":")
	number := func(s string) bool { _, err := strconv.ParseUint(s, 10, 31); return err == nil }
	return number(uid) && (!both || number(gid))
}

// runIn runs a command in a worker: in a session with its toolbox, which takes
// a fraction of the time that an engine needs, or, for another user, by the
// engine.
func runIn(ctx context.Context, e *Running, worker string, run engine.ExecOptions, signs *Signs) (int, error) {
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
		TTY: run.TTY, Size: run.Size, Resized: run.Resized, Note: signs.noted,
	})
}

// sessionFailure knows why a session runs no command, or lost it.
func sessionFailure(err error, worker, program, workdir string) *Failure {
	if e, ok := errors.AsType[*engine.NoToolboxError](err); ok {
		return Fail(CodeExecFailed, "%w", e)
	}
	if lost, ok := errors.AsType[*wire.LostError](err); ok {
		return Fail(CodeExecFailed, "the connection to %s was lost while %s ran: %w", worker, program, lost.Cause).
			Hint("`workshop ps` shows whether the worker runs; what the command did until then is done")
	}
	e, ok := errors.AsType[*client.ExecError](err)
	switch {
	case !ok:
		return nil
	case e.Code == codeNotFound:
		return Fail(codeNotFound, "%s: not found in the worker", program)
	case e.Code == 126:
		return Fail(126, "%s: can't be executed in the worker", program)
	}
	if refused, ok := errors.AsType[*wire.Error](err); ok {
		if reason, ok := strings.CutPrefix(refused.Message, "cwd "); ok && workdir != "" {
			return Fail(CodeExecFailed, "--workdir %s", reason)
		}
		if strings.HasPrefix(refused.Message, "workdir ") {
			return Fail(CodeExecFailed, "%s: %w", program, e).Hint("look from another directory: `workshop exec -w / %s -- ls -la`", worker)
		}
	}
	return Fail(CodeExecFailed, "%s: %w", program, e)
}

// execError is a command that was not started.
func (env *Env) execError(ctx context.Context, err error, r *Running, worker, program, workdir string) error {
	if _, ok := errors.AsType[*engine.ForeignError](err); ok {
		return env.foreignError(r.ProjectRef, err)
	}
	_, lost := errors.AsType[*wire.LostError](err)
	failed := sessionFailure(err, worker, program, workdir)
	if failed == nil {
		failed = startFailure(err, program, workdir)
	}
	if failed != nil && !lost {
		failed.hintWords(program, worker)
		if failed.Code == codeNotFound && len(failed.Hints) == 0 {
			if s, w := env.quietWorker(ctx, r, worker); w != nil {
				if hint := env.hintOnHost(s, w, program); hint != "" {
					failed.Hint("%s", hint)
				}
			}
		}
		return failed
	}
	if seen, observeErr := r.lookAfterEnd(ctx, worker); observeErr == nil {
		if err := engine.CheckDirectory(seen, r.Dir); err != nil {
			return env.foreignError(r.ProjectRef, err)
		}
		if err := env.services(ctx, r.ProjectRef, seen, []string{worker}, compose.RoleWorker); err != nil {
			if f, ok := errors.AsType[*Failure](err); ok && errors.Is(f, ErrNotUp) {
				f.Hints = []string{env.StartHint(ctx, r.ProjectRef)}
			}
			return err
		}
		for _, c := range seen.Containers {
			if c.Service != worker || c.State == "running" {
				continue
			}
			text := "worker " + worker + " is " + c.State
			if why := c.WhyEnded(); why != "" {
				text += ": " + why
			}
			if lost {
				text = program + " was lost: " + text
			}
			return Fail(CodeExecFailed, "%s", text).Hint("%s", env.StartHint(ctx, r.ProjectRef))
		}
	}
	if failed != nil {
		return failed
	}
	return EngineError(err)
}

// hintWords says how the words of a command line are meant where its first one is no
// program.
func (f *Failure) hintWords(program, worker string) *Failure {
	switch {
	case f.Code != codeNotFound:
	case strings.HasPrefix(program, "-"):
		f.Hint("flags go before the worker, as in `workshop exec -w /scratch %s -- ls`", worker)
	case strings.ContainsAny(program, " \t"):
		f.Hint("it is one word with blanks; a shell splits it: `workshop exec %s -- sh -c %s`", worker, shellquote.Quote(program))
	}
	return f
}

// lookAfterEnd looks at the project after a connection to a worker ended. An engine
// needs a moment to notice where the worker ended, too.
func (r *Running) lookAfterEnd(ctx context.Context, worker string) (engine.Observed, error) {
	late := time.After(endedWait)
	for {
		seen, err := r.Look(ctx, true)
		if err != nil || !slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.Service == worker && c.State == "running" }) {
			return seen, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-late:
			return seen, nil
		case <-ctx.Done():
			return seen, nil
		}
	}
}

// endedWait is how long a worker may take to end after its connections.
// Docker on a busy machine notices a second later.
const endedWait = 3 * time.Second

// startFailure knows what OCI runtimes say of a program that can't be started.
func startFailure(err error, program, workdir string) *Failure {
	text := err.Error()
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case has("chdir to cwd"):
		return Fail(CodeExecFailed, "--workdir %s: there is no such directory in the worker, or its user may not enter it", workdir)
	case has("executable file not found", "no such file or directory", "stat "+program):
		return Fail(codeNotFound, "%s: not found in the worker", program)
	case has("permission denied", "exec format error", "is a directory"):
		return Fail(126, "%s: can't be executed in the worker", program)
	}
	return nil
}
