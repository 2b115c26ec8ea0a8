package engine

import (
	"errors"
	"fmt"
)

// ConflictError means that the project has changed since the plan's observation: an
// object appeared, disappeared, or is in use. One cause is a client that was killed
// while the engine finishes its request. Observe and plan again.
type ConflictError struct{ Err error }

// Conflict is a [ConflictError] with a formatted message.
func Conflict(format string, args ...any) error {
	return &ConflictError{Err: fmt.Errorf(format, args...)}
}

// Error returns the engine's message.
func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *ConflictError) Unwrap() error { return e.Err }

// IsConflict reports whether an error is a [ConflictError].
func IsConflict(err error) bool { return errors.As(err, new(*ConflictError)) }
