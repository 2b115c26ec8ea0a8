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
	return fmt.Sprintf("%s of the worker %s was lost: %s. It may have been executed, whole or in part; it isn't repeated. Look at what it has done before you call it again", e.Tool, e.Worker, e.Known)
}

func (e *LostError) Unwrap() error { return e.Cause }
