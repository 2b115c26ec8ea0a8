package app

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The exit codes, by family. exec and shell pass on the command's own code,
// with Docker's 125 (we failed), 126 (not executable) and 127 (not found).
const (
	CodeOK          = 0
	CodeFailed      = 1
	CodeUsage       = 2
	CodeInvalid     = 3   // the workshop is invalid
	CodeRefused     = 4   // by policy, or the engine can't keep a promise
	CodeEngine      = 5   // the engine failed or doesn't answer
	CodeTimedOut    = 124 // run: the command's time was over, as timeout(1) says it
	CodeExecFailed  = 125 // exec: the command was not started, by our fault
	CodeInterrupted = 130
)

// ErrInterrupted is the cause of a context that a person's signal cancelled.
var ErrInterrupted = errors.New("interrupted")

// TimedOut is the cause of a context of a command whose time is over.
type TimedOut time.Duration

// Error says how long it was.
func (t TimedOut) Error() string { return "the command timed out after " + time.Duration(t).String() }

// Failure is an error that knows its exit code and what to do about it.
type Failure struct {
	Code  int
	Err   error // nil: everything has been said already
	Hints []string
	// Remaining are hints that hold as long as what failed is still there.
	Remaining []string
}

// Error is that of Err.
func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Fail makes a failure with a formatted message (%w wraps).
func Fail(code int, format string, args ...any) *Failure {
	return &Failure{Code: code, Err: fmt.Errorf(format, args...)}
}

// CodeOf is the exit code of an error.
func CodeOf(err error) int {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	return CodeFailed
}

// Exit makes a failure about which everything has been said.
func Exit(code int) *Failure { return &Failure{Code: code} }

// Hint adds a line that says what to do.
func (f *Failure) Hint(format string, args ...any) *Failure {
	f.Hints = append(f.Hints, fmt.Sprintf(format, args...))
	return f
}

// HintRemaining is Hint for one that holds as long as what failed is there.
func (f *Failure) HintRemaining(format string, args ...any) *Failure {
	f.Remaining = append(f.Remaining, fmt.Sprintf(format, args...))
	return f
}

// AllHints are the hints in the order in which they are shown.
func (f *Failure) AllHints() []string { return slices.Concat(f.Hints, f.Remaining) }
