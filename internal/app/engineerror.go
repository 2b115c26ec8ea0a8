package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// EngineError adds the exit code and hints to an engine's error: its own where
// it has one (ExitCode), else 5.
func EngineError(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	f := &Failure{Code: CodeEngine, Err: err}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		f.Code = coded.ExitCode()
	}
	return engineHints(f)
}

// stoppedError is a worker that doesn't run, without what to do.
type stoppedError struct {
	text  string
	cause *engine.NotRunningError
}

func (e stoppedError) Error() string { return e.text }
func (e stoppedError) Unwrap() error { return e.cause }

// engineHints moves what the engine's errors say to do to lines of their own.
func engineHints(f *Failure) *Failure {
	if e, ok := errors.AsType[*docker.UnreachableError](f.Err); ok && e.Hint != "" {
		plain := *e
		plain.Hint = ""
		return (&Failure{Code: f.Code, Err: &plain}).Hint("%s", e.Hint)
	}
	if e, ok := errors.AsType[*engine.RefusedError](f.Err); ok && e.Do != "" {
		plain := *e
		plain.Do = ""
		return (&Failure{Code: f.Code, Err: &plain}).Hint("%s", e.Do)
	}
	if e, ok := errors.AsType[*engine.ForeignError](f.Err); ok {
		out := Fail(f.Code, "%s", e.What()).Hint("to have one of its own here, add `-p %s`", e.Suggest)
		if !e.Workshop {
			kind, name, _ := strings.Cut(e.Object, "/")
			return out.Hint("to see what it is: `docker %s inspect %s`", kind, Printable(shellquote.Quote(name)))
		}
		return out.Hint("to remove that one: `cd %s && workshop -p %s down`", Printable(shellquote.Quote(e.Other)), e.Project)
	}
	if e, ok := errors.AsType[*heldPortError](f.Err); ok {
		return e.failure(f.Code)
	}
	if e, ok := errors.AsType[*engine.PortTakenError](f.Err); ok {
		taken := Fail(f.Code, "port %s, which %s publishes, is taken by another program or container%s", e.Address, e.Worker, e.By)
		if e.Target != 0 {
			return taken.Hint("%s; `ss -ltnp 'sport = :%s'` or, for Docker's, `docker ps --filter publish=%s` tells what has this one", releaseHint(e), e.Port, e.Port)
		}
		return taken.
			Hint("`ss -ltnp 'sport = :%s'` or, for Docker's, `docker ps --filter publish=%s` tells by which; stop it, or publish another port under `ports` of %s", e.Port, e.Port, e.Worker)
	}
	if e, ok := errors.AsType[*engine.NotRunningError](f.Err); ok {
		state := e.State
		if state == "" {
			state = "not up"
		}
		if e.Why != "" {
			state += ": " + e.Why
		}
		text := fmt.Sprintf("%s of project %s: %s", strings.Join(e.Services, ", "), e.Project, state)
		return (&Failure{Code: f.Code, Err: stoppedError{text, e}}).Hint("start it with `workshop up`")
	}
	if e, ok := errors.AsType[*engine.NotReadyError](f.Err); ok {
		return f.HintRemaining("see `workshop logs %s`; `workshop up` tries again, `workshop down` removes what is there", e.Service)
	}
	return f
}
