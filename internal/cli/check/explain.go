package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/diagcode"
	"github.com/llmdo/workshop/internal/lib/textwrap"
	"github.com/llmdo/workshop/internal/promise"
)

// Explain is the verb explain.
func Explain(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "explain [PROMISE | CODE]",
		Short: "Explain a promise or the code of a diagnostic",
		Long: `explain says what a numbered promise of the boundary means, how each engine keeps
it and what tests it; or what the code of a diagnostic means, with an example
and the lines to write. Without an argument it lists both.`,
		Example: `  workshop explain B23
  workshop explain mount-not-writable
  workshop explain B23 --format json`,
		Args: command.Args(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return command.Beginning(prefix, nil, explained()), cobra.ShellCompDirectiveNoFileComp
		},
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listExplained(format)
			}
			return a.explain(format, args[0])
		}),
	}
}

// promiseEntry is what is known of a promise.
type promiseEntry struct {
	Promise string       `json:"promise"`
	Area    promise.Area `json:"area"`
	Title   string       `json:"title"`
	promise.Explanation
	Kept []keptEntry `json:"kept"`
}

type keptEntry struct {
	Engine string `json:"engine"` // or gvisor or vm, for a worker with a kernel of its own
	Held   bool   `json:"held"`
	// Differently: it holds, and not as for a worker with this machine's kernel.
	Differently bool   `json:"differently,omitempty"`
	How         string `json:"how"`

	text string
}

func newPromiseEntry(p promise.Promise) promiseEntry {
	e := promiseEntry{Promise: p.ID, Area: p.Area, Title: p.Title, Explanation: promise.Explain(p.ID)}
	for _, kind := range promise.Kinds() {
		k := promise.Of(kind, p.ID)
		e.Kept = append(e.Kept, keptEntry{kind, k.Held, k.Differently != "", k.How, k.Text()})
	}
	e.Tests = promise.Tests(p.ID)
	return e
}

// explained are all names that can be explained.
func explained() []string {
	var names []string
	for _, p := range promise.All() {
		names = append(names, p.ID)
	}
	for _, e := range diagcode.All() {
		names = append(names, e.Code)
	}
	return names
}

func (a verbs) explain(format, name string) error {
	if i := slices.IndexFunc(promise.All(), func(p promise.Promise) bool { return strings.EqualFold(p.ID, name) }); i >= 0 {
		e := newPromiseEntry(promise.All()[i])
		if format == "json" {
			return a.WriteJSON(e)
		}
		return a.explainPromise(e)
	}
	if e, ok := diagcode.Of(strings.ToLower(name)); ok {
		if format == "json" {
			return a.WriteJSON(e)
		}
		a.explainCode(e)
		return nil
	}
	f := app.Fail(app.CodeUsage, "explain: %q is neither a promise nor the code of a diagnostic", name)
	if near := nearNames(name); len(near) > 0 {
		return f.Hint("did you mean %s?", strings.Join(near, ", "))
	}
	return f.Hint("list both: `workshop explain`")
}

// maxNear is how many names are offered in the place of an unknown one.
const maxNear = 5

// nearNames are the name that was probably meant, then those that contain it.
func nearNames(name string) []string {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil
	}
	all := explained()
	var near []string
	if best := cmp.Or(app.Nearest(strings.ToLower(name), all), app.Nearest(strings.ToUpper(name), all)); best != "" {
		near = append(near, best)
	}
	for _, n := range all {
		if strings.Contains(strings.ToLower(n), strings.ToLower(name)) && !slices.Contains(near, n) {
			near = append(near, n)
		}
	}
	return near[:min(len(near), maxNear)]
}

func (a verbs) explainPromise(e promiseEntry) error {
	a.WriteLine(e.Promise + ": " + e.Title)
	fmt.Fprintln(a.Out)
	a.paragraph(e.Meaning)
	a.paragraph("Example: " + e.Example)
	fmt.Fprintln(a.Out, "How it is kept by each engine, and for a worker on gVisor:")
	w := a.Table()
	for _, k := range e.Kept {
		fmt.Fprintf(w, "  %s\t%s\n", k.Engine, k.text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	a.paragraph("Tested by " + strings.Join(e.Tests, ", ") + ".")
	a.WriteLine(a.Pasteable("On this machine: `workshop capabilities`"))
	return nil
}

func (a verbs) explainCode(e diagcode.Entry) {
	fmt.Fprintf(a.Out, "%s\n\n", e.Code)
	a.paragraph(e.Meaning)
	for _, b := range e.Example {
		a.block(cmp.Or(b.File, "For example"), b.Text)
	}
	for _, b := range e.Write {
		a.block("Write", b.Text)
	}
}

// paragraph writes text and an empty line.
func (a verbs) paragraph(text string) {
	width := a.Columns(a.Out)
	if width == 0 {
		width = proseColumns
	}
	fmt.Fprintf(a.Out, "%s\n\n", a.Pasteable(textwrap.Lines(text, width, 0)))
}

// proseColumns is how wide text is where it doesn't go to a terminal.
const proseColumns = 80

// block writes lines to copy, indented and never wrapped.
func (a verbs) block(title, text string) {
	fmt.Fprintf(a.Out, "%s:\n\n", title)
	for line := range strings.Lines(text) {
		fmt.Fprint(a.Out, strings.TrimRight("    "+line, " \n")+"\n")
	}
	fmt.Fprintln(a.Out)
}

// listExplained lists what can be explained.
func (a verbs) listExplained(format string) error {
	var promises []promiseEntry
	for _, p := range promise.All() {
		promises = append(promises, newPromiseEntry(p))
	}
	if format == "json" {
		return a.WriteJSON(map[string]any{"promises": promises, "codes": diagcode.All()})
	}
	w := a.Table()
	fmt.Fprintln(w, "PROMISE\tWHAT")
	for _, p := range promises {
		fmt.Fprintf(w, "%s\t%s\n", p.Promise, p.Title)
	}
	fmt.Fprintln(w, "\nCODE\tWHAT")
	for _, e := range diagcode.All() {
		sentence, _, _ := strings.Cut(e.Meaning, ". ")
		fmt.Fprintf(w, "%s\t%s\n", e.Code, strings.TrimSuffix(sentence, "."))
	}
	return w.Flush()
}
