package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// Report prints what a command returned, and returns the exit code for it.
func (s *System) Report(ctx context.Context, cmd *cobra.Command, err error) int {
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
	s.PrintFailure(f)
	return f.Code
}

// interrupted keeps the hints of what was interrupted, and nothing else of it.
func interrupted(f *app.Failure) *app.Failure {
	return &app.Failure{Code: app.CodeInterrupted, Err: app.ErrInterrupted, Hints: f.AllHints()}
}

// cmdPassesCodes reports whether a command's code is another's, as that of exec.
func cmdPassesCodes(cmd *cobra.Command) bool {
	return cmd != nil && cmd.Annotations[annotationCode] != ""
}

// PassesExitCode are the annotations of a command that passes on an exit code.
func PassesExitCode() map[string]string { return map[string]string{annotationCode: "yes"} }

const annotationCode = "passes-exit-code"

// PrintFailure writes the error, if there is one, and the hints.
func (s *System) PrintFailure(f *app.Failure) {
	if f.Err != nil {
		s.writeErr("workshop: error: ", app.Indent(f.Err.Error()))
	}
	for _, h := range f.AllHints() {
		s.writeErr("workshop: hint: ", app.Indent(h))
	}
}
