package command

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/diagtext"
)

// colorErr reports whether the standard error takes colour.
func (a *Program) colorErr() bool { return !a.set.noColor && terminal.Is(a.Err) }

// ColorOut reports whether the standard output takes colour.
func (a *Program) ColorOut() bool { return !a.set.noColor && terminal.Is(a.Out) }

// show prints what happens in a use case, on the standard error.
func (a *Program) show(e app.Event) {
	switch e.Kind {
	case app.Notice:
		a.Say("%s", e.Text)
	case app.Detail:
		a.detail("%s", e.Text)
	case app.Warning:
		a.Warn("%s", e.Text)
	case app.Hint:
		a.Hint("%s", e.Text)
	case app.Problems:
		// What can't be written there can't be said either.
		_ = a.printDiagnostics(e.Diagnostics, e.Sources)
	case app.StepsBegin:
		a.steps = terminal.NewProgress(a.Err, a.Getenv("TERM") == "dumb", a.colorErr())
	case app.Step:
		a.steps.Event(e.Step)
	case app.StepsEnd:
		a.steps.Done()
	}
}

// Say writes one line for the person to the standard error, unless --quiet.
func (a *Program) Say(format string, args ...any) {
	if !a.Quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// Warn writes one line that a person must not miss, --quiet or not.
func (a *Program) Warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "workshop: warning: %s\n", app.Indent(fmt.Sprintf(format, args...)))
}

// detail writes one line with -v only.
func (a *Program) detail(format string, args ...any) {
	if a.Verbose && !a.Quiet {
		fmt.Fprintf(a.Err, "workshop: "+format+"\n", args...)
	}
}

// Hint writes one line that says what to do.
func (a *Program) Hint(format string, args ...any) {
	a.PrintFailure((&app.Failure{}).Hint(format, args...))
}

// printDiagnostics writes a list to the standard error as text.
func (a *Program) printDiagnostics(list diag.List, texts map[string][]byte) error {
	if len(list) == 0 {
		return nil
	}
	return diagtext.Text(a.Err, list, diagtext.TextOptions{
		Sources: texts, Color: a.colorErr(), Width: terminal.Width(a.Err),
	})
}
