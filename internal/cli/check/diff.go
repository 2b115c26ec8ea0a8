package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/diff"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// Diff is the verb diff.
func Diff(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.DiffOptions
	var failOn []string
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Show what a change of the workshop grants",
		Long: `diff compares what each worker is granted with what it was granted at another
revision: presets expanded, denied lines subtracted, narrowed by its own container.
Edits that change nothing of that give no line.

  widened   more is granted than before
  unknown   whether more is granted can't be decided, as with a variable
  changed   neither is more: another image, another prompt
  narrowed  less is granted

The base is read from git's objects, and nothing is checked out. Neither side reads
the environment or .env: ` + "`${VAR}`" + ` stands for itself. With --boundary the workers are
compared with the container of an organisation's workshop file, of which they may have
less.

The exit code is 0 whatever is found; with --fail-on it is 4 if there is such a line. A
side that can't be loaded is 3.`,
		Example: `  workshop diff --base origin/main
  workshop diff --base origin/main --fail-on widened,unknown
  workshop diff --boundary /etc/acme/workshop.yaml --fail-on widened,unknown
  workshop diff --base HEAD~1 --format md`,
		Annotations: command.Formats("text", "json", "md", "sarif", "github"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			fail, err := states(cmd, failOn)
			if err != nil {
				return err
			}
			if o.Base == "" && o.Boundary == "" {
				return command.UsageError(cmd, "compared with what? Name a revision (--base) or a file (--boundary)")
			}
			return a.diff(ctx, cmd, o, fail)
		}),
	}
	cmd.Flags().StringVar(&o.Base, "base", "", "revision to compare with")
	cmd.Flags().StringVar(&o.Boundary, "boundary", "", "workshop file that grants at most what is meant")
	cmd.Flags().StringSliceVar(&failOn, "fail-on", nil, "exit with 4 if a line has one of these states")
	_ = cmd.MarkFlagFilename("boundary", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		done := prefix[:strings.LastIndexByte(prefix, ',')+1]
		var names []string
		for _, s := range diff.States() {
			if !slices.Contains(strings.Split(done, ","), string(s)) {
				names = append(names, done+string(s))
			}
		}
		return command.Beginning(prefix, nil, names), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	return cmd
}

// states reads --fail-on.
func states(cmd *cobra.Command, names []string) (out []diff.State, err error) {
	for _, name := range names {
		if !slices.Contains(diff.States(), diff.State(name)) {
			return nil, command.UsageError(cmd, "--fail-on %q: want widened, unknown, changed or narrowed", name)
		}
		out = append(out, diff.State(name))
	}
	return out, nil
}

func (a verbs) diff(ctx context.Context, cmd *cobra.Command, o app.DiffOptions, fail []diff.State) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	r, err := a.Diff(ctx, o)
	if err != nil {
		return err
	}
	switch all := r.All(); format {
	case "json":
		err = a.WriteJSON(diffJSON(r))
	case "md":
		a.diffMarkdown(r)
	case "sarif":
		err = diagtext.SARIF(a.Out, diff.Diagnostics(all, fail))
	case "github":
		err = diagtext.GitHub(a.Out, diff.Diagnostics(all, fail))
	default:
		a.diffText(r, fail)
	}
	if err == nil && slices.ContainsFunc(r.All(), func(row diff.Row) bool { return slices.Contains(fail, row.State) }) {
		err = app.Exit(app.CodeRefused)
	}
	return err
}

// diffText writes a line for each row, the most dangerous first, and what was compared.
func (a verbs) diffText(r app.DiffReport, fail []diff.State) {
	paint := map[diff.State]color.Attribute{diff.Widened: color.FgRed, diff.Unknown: color.FgYellow, diff.Changed: color.FgCyan, diff.Narrowed: color.FgGreen}
	rows := func(list []diff.Row) {
		for i := range list {
			state := string(list[i].State)
			fmt.Fprintf(a.Out, "%s%s  %s  [%s]\n", terminal.Paint(a.ColorOut(), paint[list[i].State])(state), strings.Repeat(" ", len(diff.Narrowed)-len(state)), list[i].Summary(), list[i].Places())
		}
	}
	rows(r.Rows)
	if r.Base != "" && !a.Quiet {
		fmt.Fprintf(a.Out, "%s: %s against %s (%.12s)\n", diff.Counts(r.Rows), app.Printable(r.File), app.Printable(r.Base), r.Commit)
	}
	rows(r.Beyond)
	if r.Boundary != "" && !a.Quiet {
		counts := diff.Counts(r.Beyond)
		if len(r.Beyond) == 0 {
			counts = "nothing"
		}
		fmt.Fprintf(a.Out, "%s beyond the boundary: %s against %s\n", counts, app.Printable(r.File), app.Printable(r.Boundary))
	}
	if len(r.All()) > 0 && !a.Quiet {
		fmt.Fprintln(a.Out, app.Printable(a.Pasteable("reproduce it: `"+diffCommand(r, fail)+"`")))
	}
}

// diffCommand is the command that gives the same.
func diffCommand(r app.DiffReport, fail []diff.State) string {
	text := "workshop diff -f " + shellquote.Path(r.File)
	if r.Base != "" {
		text += " --base " + shellquote.Quote(cmp.Or(r.Commit, r.Base))
	}
	if r.Boundary != "" {
		text += " --boundary " + shellquote.Path(r.Boundary)
	}
	for i, s := range fail {
		text += map[bool]string{true: " --fail-on ", false: ","}[i == 0] + string(s)
	}
	return text
}

func (a verbs) diffMarkdown(r app.DiffReport) {
	part := func(rows []diff.Row, title string) {
		fmt.Fprintf(a.Out, "### %s: %s\n\n", title, diff.Counts(rows))
		if len(rows) > 0 {
			fmt.Fprintf(a.Out, "%s\n", diff.Markdown(rows))
		}
	}
	if r.Base != "" {
		part(r.Rows, "What this change grants")
	}
	if r.Boundary != "" {
		part(r.Beyond, "Beyond the boundary")
	}
	fmt.Fprintf(a.Out, "<sub>`%s`</sub>\n", strings.NewReplacer("`", "'", "<", "").Replace(app.Printable(diffCommand(r, nil))))
}

// diffEntry is the result for programs.
type diffEntry struct {
	File     string             `json:"file"`
	Base     string             `json:"base,omitempty"`
	Commit   string             `json:"commit,omitempty"`
	Boundary string             `json:"boundary,omitempty"`
	Counts   map[diff.State]int `json:"counts"`
	Rows     []diffRow          `json:"rows"`
}

type diffRow struct {
	State   diff.State  `json:"state"`
	Against string      `json:"against"` // base or boundary
	Workers []string    `json:"workers"` // empty: the workshop
	Surface string      `json:"surface"`
	Before  string      `json:"before"`
	After   string      `json:"after"`
	At      *diag.Range `json:"at,omitempty"`
	Was     *diag.Range `json:"was,omitempty"`
}

func diffJSON(r app.DiffReport) diffEntry {
	e := diffEntry{File: r.File, Base: r.Base, Commit: r.Commit, Boundary: r.Boundary, Counts: map[diff.State]int{}, Rows: []diffRow{}}
	for _, s := range diff.States() {
		e.Counts[s] = diff.Count(r.All(), s)
	}
	rangeOf := func(r diag.Range) *diag.Range {
		if r.Filename == "" {
			return nil
		}
		return &r
	}
	add := func(rows []diff.Row, against string) {
		for _, x := range rows {
			e.Rows = append(e.Rows, diffRow{x.State, against, append([]string{}, x.Workers...), x.Surface, x.Before, x.After, rangeOf(x.At), rangeOf(x.Was)})
		}
	}
	add(r.Rows, "base")
	add(r.Beyond, "boundary")
	return e
}
