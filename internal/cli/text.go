package cli

import (
	"fmt"

	"github.com/fatih/color"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/diagtext"
)

// colorErr tells whether the standard error takes colour, colorOut the
// standard output.
func (a *program) colorErr() bool { return !a.set.noColor && isTerminal(a.Err) }
func (a *program) colorOut() bool { return !a.set.noColor && isTerminal(a.Out) }

// paint gives a function that colours text, or leaves it as it is.
func paint(on bool, attributes ...color.Attribute) func(string) string {
	c := color.New(attributes...)
	if on {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return func(s string) string { return c.Sprint(s) }
}

// show prints what happens in a use case, on the standard error.
func (a *program) show(e app.Event) {
	switch e.Kind {
	case app.Notice:
		a.say("%s", e.Text)
	case app.Detail:
		a.detail("%s", e.Text)
	case app.Warning:
		a.warn("%s", e.Text)
	case app.Hint:
		a.hint("%s", e.Text)
	case app.Problems:
		// What can't be written there can't be said either.
		_ = a.printDiagnostics(e.Diagnostics, e.Sources)
	case app.StepsBegin:
		a.steps = a.newProgress()
	case app.Step:
		a.steps.event(e.Step)
	case app.StepsEnd:
		a.steps.done()
	}
}

// say writes one line for the person to the standard error, unless --quiet.
func (a *program) say(format string, args ...any) {
	if !a.Quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// warn writes one line that a person must not miss, --quiet or not.
func (a *program) warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "workshop: warning: %s\n", app.Indent(fmt.Sprintf(format, args...)))
}

// detail writes one line with -v only.
func (a *program) detail(format string, args ...any) {
	if a.Verbose && !a.Quiet {
		fmt.Fprintf(a.Err, "workshop: "+format+"\n", args...)
	}
}

// hint writes one line that says what to do.
func (a *program) hint(format string, args ...any) {
	a.printFailure((&app.Failure{}).Hint(format, args...))
}

// printDiagnostics writes a list to the standard error as text.
func (a *program) printDiagnostics(list diag.List, texts map[string][]byte) error {
	if len(list) == 0 {
		return nil
	}
	return diagtext.Text(a.Err, list, diagtext.TextOptions{
		Sources: texts, Color: a.colorErr(), Width: width(a.Err),
	})
}

// cut shortens to n characters, keeping the end of a name, which tells more.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
