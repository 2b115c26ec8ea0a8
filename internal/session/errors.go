package session

import (
	"fmt"
)

// UnreachableError is a worker in which no session can be opened: it doesn't run, or
// takes none. Nothing was executed.
type UnreachableError struct {
	Worker string
	Cause  error // for a person: it may say what to do on this machine
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the worker %s can't be reached: %v", e.Worker, e.Cause)
}

func (e *UnreachableError) Unwrap() error { return e.Cause }

// LostError is a worker that was gone in mid-call. The call may have been
// executed, whole or in part; it is never repeated.
type LostError struct {
	Worker, Tool string
	// Known is what is known of the reason, in words: "the worker was restarted".
	Known string
	// Unreached is why there is no way back to the worker, for a person; nil: there is.
	Unreached *UnreachableError
	Cause     error
}

func (e *LostError) Error() string {
	known := e.Known
	if e.Unreached != nil {
		known = e.Unreached.Cause.Error()
	}
	return fmt.Sprintf("%s of %s was lost: %s. It may have run, in whole or in part: look at what it did before you call it again", e.Tool, e.Worker, known)
}

func (e *LostError) Unwrap() error { return e.Cause }
