package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// report prints what a command returned and gives the exit code for it.
func report(ctx context.Context, sys *System, cmd *cobra.Command, err error) int {
	if err == nil {
		return app.CodeOK
	}
	f, ok := errors.AsType[*app.Failure](err)
	if !ok {
		f = &app.Failure{Code: app.CodeFailed, Err: err}
	}
	switch {
	case f.Err == nil: // a code that was passed on or has been explained
	case f.Code != app.CodeUsage && errors.Is(context.Cause(ctx), app.ErrInterrupted):
		f = interrupted(f)
	case cmdPassesCodes(cmd) && f.Code < app.CodeExecFailed:
		f.Code = app.CodeExecFailed
	}
	sys.printFailure(f)
	return f.Code
}

// interrupted keeps the hints of what was interrupted, and nothing else of it.
func interrupted(f *app.Failure) *app.Failure {
	return &app.Failure{Code: app.CodeInterrupted, Err: app.ErrInterrupted, Hints: f.AllHints()}
}

// cmdPassesCodes tells of exec and shell, whose code is the command's own.
func cmdPassesCodes(cmd *cobra.Command) bool {
	return cmd != nil && cmd.Annotations[annotationCode] != ""
}

// annotationCode marks the commands that pass on an exit code.
const annotationCode = "passes-exit-code"

// printFailure writes the error, if there is one, and the hints.
func (s *System) printFailure(f *app.Failure) {
	if f.Err != nil {
		fmt.Fprintf(s.Err, "workshop: error: %s\n", app.Indent(s.commands(f.Err.Error())))
	}
	for _, h := range f.AllHints() {
		fmt.Fprintf(s.Err, "workshop: hint: %s\n", app.Indent(s.commands(h)))
	}
}
