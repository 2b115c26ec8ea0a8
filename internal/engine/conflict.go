package engine

import (
	"errors"
	"fmt"
)

// ConflictError reports that the project isn't as the plan's observation says: an
// object appeared, is gone, or is in use. An engine finishes what it was asked
// for by a client that was killed since. Observe and plan again.
type ConflictError struct{ Err error }

// Conflict is a [ConflictError] with a formatted message.
func Conflict(format string, args ...any) error {
	return &ConflictError{Err: fmt.Errorf(format, args...)}
}

// Error is the engine's message.
func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *ConflictError) Unwrap() error { return e.Err }

// IsConflict reports whether an error is a [ConflictError].
func IsConflict(err error) bool { return errors.As(err, new(*ConflictError)) }
