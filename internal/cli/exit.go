package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes, by family. exec and shell pass on the command's own code,
// with Docker's 125 (we failed), 126 (not executable) and 127 (not found).
const (
	codeOK          = 0
	codeFailed      = 1
	codeUsage       = 2
	codeInvalid     = 3   // the workshop is invalid
	codeRefused     = 4   // by policy, or the engine can't keep a promise
	codeEngine      = 5   // the engine failed or doesn't answer
	codeExecFailed  = 125 // exec: the command was not started, by our fault
	codeInterrupted = 130
)

// failure is an error that knows its exit code and what to do about it.
type failure struct {
	code  int
	err   error // nil: everything has been printed already
	hints []string
	// remaining are hints that hold as long as what failed is still there.
	remaining []string
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// fail makes a failure with a formatted message (%w wraps).
func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

// exit makes a failure that prints nothing.
func exit(code int) *failure { return &failure{code: code} }

// hint adds a line that says what to do.
func (f *failure) hint(format string, args ...any) *failure {
	f.hints = append(f.hints, fmt.Sprintf(format, args...))
	return f
}

// hintRemaining is hint for one that holds as long as what failed is there.
func (f *failure) hintRemaining(format string, args ...any) *failure {
	f.remaining = append(f.remaining, fmt.Sprintf(format, args...))
	return f
}

// allHints are the hints in the order in which they are shown.
func (f *failure) allHints() []string { return slices.Concat(f.hints, f.remaining) }

// report prints what a command returned and gives the exit code for it.
func report(ctx context.Context, sys *System, cmd *cobra.Command, err error) int {
	if err == nil {
		return codeOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: codeFailed, err: err}
	}
	switch {
	case f.err == nil: // a code that was passed on or has been explained
	case f.code != codeUsage && errors.Is(context.Cause(ctx), errInterrupted):
		f = interrupted(f)
	case cmdPassesCodes(cmd) && f.code < codeExecFailed:
		f.code = codeExecFailed
	}
	sys.printFailure(f)
	return f.code
}

// interrupted keeps the hints of what was interrupted, and nothing else of it.
func interrupted(f *failure) *failure {
	return &failure{code: codeInterrupted, err: errInterrupted, hints: f.allHints()}
}

// cmdPassesCodes tells of exec and shell, whose code is the command's own.
func cmdPassesCodes(cmd *cobra.Command) bool {
	return cmd != nil && cmd.Annotations[annotationCode] != ""
}

// annotationCode marks the commands that pass on an exit code.
const annotationCode = "passes-exit-code"

// printFailure writes the error, if there is one, and the hints.
func (s *System) printFailure(f *failure) {
	if f.err != nil {
		fmt.Fprintf(s.Err, "workshop: error: %s\n", indent(s.commands(f.err.Error())))
	}
	for _, h := range f.allHints() {
		fmt.Fprintf(s.Err, "workshop: hint: %s\n", indent(s.commands(h)))
	}
}

// indent keeps the lines of one message together. What a worker, an image or an
// engine said may stand in them, so each is printable.
func indent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n  ")
}
