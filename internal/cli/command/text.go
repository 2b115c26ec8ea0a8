package command

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/lib/textwrap"
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
		a.steps = terminal.NewProgress(a.Err, a.Getenv("TERM") == "dumb", a.colorErr(), a.Verbose)
	case app.Step:
		if !a.Quiet {
			a.steps.Event(e.Step)
		}
		a.Changes.Add(e.Step)
	case app.StepsEnd:
		a.steps.Done()
		if !a.KeepChanges {
			a.sayChanges()
		}
	}
}

// sayChanges writes a line per worker: what was done to it. With -v that has been
// said.
func (a *Program) sayChanges() {
	for _, worker := range a.Changes.Workers() {
		if !a.Verbose {
			a.Say("%s: %s", worker, a.Changes.Text(worker))
		}
	}
	a.Changes = app.Changes{}
}

// Columns is how wide text on a stream may be: the width of a terminal, or what
// the variable COLUMNS says for it; 0, no limit, where the stream is not a terminal.
func (s *System) Columns(stream any) int {
	columns := ""
	if s.Env != nil && s.Lookup != nil {
		columns = s.Getenv("COLUMNS")
	}
	return terminal.Width(stream, columns)
}

// Table is for the standard output: cells end with a tab.
func (s *System) Table() *terminal.Table { return terminal.NewTable(s.Out, s.Columns(s.Out)) }

// WriteLine writes a line to the standard output. On a terminal it is wrapped, and
// what goes on is indented.
func (s *System) WriteLine(text string) {
	fmt.Fprintln(s.Out, textwrap.Lines(text, s.Columns(s.Out), 2))
}

// writeErr writes a message to the standard error. Lines that go on are indented,
// command lines can be pasted.
func (s *System) writeErr(prefix, text string) {
	fmt.Fprintln(s.Err, textwrap.Lines(prefix+s.Pasteable(text), s.Columns(s.Err), 2))
}

// Say writes one line for the person to the standard error, unless --quiet.
func (a *Program) Say(format string, args ...any) {
	if !a.Quiet {
		a.writeErr("", app.PrintableLines(fmt.Sprintf(format, args...)))
	}
}

// Warn writes one line that a person must not miss, --quiet or not.
func (a *Program) Warn(format string, args ...any) {
	a.writeErr("workshop: warning: ", app.Indent(fmt.Sprintf(format, args...)))
}

// detail writes one line with -v only.
func (a *Program) detail(format string, args ...any) {
	if a.Verbose && !a.Quiet {
		a.writeErr("workshop: ", app.PrintableLines(fmt.Sprintf(format, args...)))
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
		Sources: texts, Color: a.colorErr(), Width: a.Columns(a.Err),
	})
}
