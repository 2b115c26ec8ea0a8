package session

import (
	"fmt"
)

// LostError is a worker that was gone in mid-call. The call may have been
// executed, whole or in part; it is never repeated.
type LostError struct {
	Worker, Tool string
	// Known is what is known of the reason, in words: "the worker was restarted".
	Known string
	Cause error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s of %s was lost: %s. It may have run, in whole or in part: look at what it did before you call it again", e.Tool, e.Worker, e.Known)
}

func (e *LostError) Unwrap() error { return e.Cause }
