package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
)

// ErrClosed is what a workshop answers after [Workshop.Close].
var ErrClosed = session.ErrClosed

// InvalidError is a workshop file with errors.
type InvalidError struct {
	File string
	// Diagnostics are all problems that were found, warnings too, in the order of
	// their places.
	Diagnostics diag.List
}

// Error lists the errors among the problems.
func (e *InvalidError) Error() string {
	text := e.File + " is invalid"
	for _, d := range e.Diagnostics {
		if d.Severity == diag.Error {
			text += "\n" + d.Error()
		}
	}
	return text
}

// NotUpError says that the workshop, or the worker, doesn't run, and what
// starts it.
type NotUpError struct{ err error }

func (e *NotUpError) Error() string { return withHints(e.err) }
func (e *NotUpError) Unwrap() error { return e.err }

// NotOfferedError says that a worker hasn't a tool, or not for these arguments.
type NotOfferedError struct {
	Worker, Tool string
	// Why, where the tool is offered with a limit that the call exceeds.
	Why string
	// Offered lists what the worker has.
	Offered []string
	err     error
}

func (e *NotOfferedError) Error() string { return e.err.Error() }

// ArgumentsError says what is wrong with the arguments of a call. Nothing was
// executed.
type ArgumentsError struct {
	Tool     string
	Problems []string
}

func (e *ArgumentsError) Error() string {
	return "the arguments of " + e.Tool + " are wrong: " + strings.Join(e.Problems, "; ")
}

// RefusedError says why a call may not run: it needs a yes and got none, or is
// denied.
type RefusedError struct {
	Worker, Tool string
	Why          string
	// Hint says what to do; may be empty.
	Hint string
	err  error
}

func (e *RefusedError) Error() string { return e.err.Error() }
func (e *RefusedError) Unwrap() error { return e.err }

// LostError is a worker that was gone in mid-call. The call may have been
// executed, whole or in part; it is never repeated.
type LostError struct {
	Worker, Tool string
	err          error
}

func (e *LostError) Error() string { return e.err.Error() }
func (e *LostError) Unwrap() error { return e.err }

// typed makes our own error one of this package.
func typed(err error) error {
	if e, ok := errors.AsType[*app.InvalidError](err); ok {
		return &InvalidError{File: e.File, Diagnostics: e.Diagnostics}
	}
	if e, ok := errors.AsType[*tool.NotOfferedError](err); ok {
		return &NotOfferedError{Worker: e.Worker, Tool: e.Tool, Why: e.Why, Offered: e.Offered, err: e}
	}
	if e, ok := errors.AsType[*session.ArgumentsError](err); ok {
		return &ArgumentsError{Tool: e.Tool, Problems: e.Problems}
	}
	if e, ok := errors.AsType[*approval.RefusedError](err); ok {
		return &RefusedError{Worker: e.Call.Worker, Tool: e.Call.Tool, Why: e.Why, Hint: e.PersonHint(), err: e}
	}
	if e, ok := errors.AsType[*session.LostError](err); ok {
		return &LostError{Worker: e.Worker, Tool: e.Tool, err: e}
	}
	if app.IsNotUp(err) {
		return &NotUpError{err}
	}
	if more := hints(err); more != "" {
		return fmt.Errorf("%w%s", err, more)
	}
	return err
}

func withHints(err error) string { return err.Error() + hints(err) }

func hints(err error) string {
	var all []string
	for _, h := range app.Hints(err) {
		if !strings.Contains(err.Error(), h) {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, "; ") + ")"
}
