package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/textwrap"
	"github.com/llmdo/workshop/internal/verify"
)

// Verify is the verb verify.
func Verify(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.VerifyRequest
	cmd := &cobra.Command{
		Use:   "verify [WORKER...]",
		Short: "Test in the running workers that the promises hold",
		Long: `verify tries in each worker what it must not be able to, and looks at the worker from
outside: its processes, mounts and control groups, the guard's denials, the engine's
settings. Each promise is held, broken, or not tested, with the reason; what has no
working control is not tested. -v shows what was tried and seen. Nothing is
changed, and no packet leaves the guard unless --live is given.

--disruptive also kills, fills and floods, in a copy of the project that has its
images, users and networks, small limits, and none of its files, secrets and ports.

It exits with 4 if a promise is broken.`,
		Example: `  workshop verify
  workshop verify -v code-reviewer
  workshop verify --live --format json`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: p.CompleteWorkers(0),
		Annotations:       command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.Workers = args
			return a.verify(ctx, cmd, o)
		}),
	}
	cmd.Flags().BoolVar(&o.Live, "live", false, "also connect to hosts that the policy allows")
	cmd.Flags().BoolVar(&o.Disruptive, "disruptive", false, "also bring up a copy of the project, and kill and fill what is in it")
	return cmd
}

func (a verbs) verify(ctx context.Context, cmd *cobra.Command, o app.VerifyRequest) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	r, err := a.Program.Verify(ctx, o)
	if err != nil {
		return err
	}
	if format == "json" {
		err = a.WriteJSON(r)
	} else {
		a.verifyText(r)
	}
	if err != nil {
		return err
	}
	if r.Broken > 0 {
		return app.Exit(app.CodeRefused)
	}
	return nil
}

// verifyText prints a line for each promise and verdict, with the workers of which it is
// the same.
func (a verbs) verifyText(r *verify.Report) {
	for _, g := range verify.Group(r.Lines) {
		a.verifyLine(g)
	}
	fmt.Fprintln(a.Out)
	a.WriteLine(fmt.Sprintf("%d held, %d broken, %d not tested (%s on %s)", r.Held, r.Broken, r.NotTested, r.Project, r.Engine))
	if r.Broken == 0 && r.NotTested > 0 {
		a.WriteLine(a.Pasteable("what a promise means: `workshop explain B21`"))
	}
}

const verdictColumn, promiseColumn = 12, 5

func (a verbs) verifyLine(g verify.Lines) {
	paint := map[verify.Verdict]color.Attribute{verify.Held: color.FgGreen, verify.Broken: color.FgRed, verify.NotTested: color.FgYellow}
	l := g.Line
	indent := verdictColumn + promiseColumn
	width := a.Columns(a.Out)
	if width > 0 {
		width = max(20, width-indent)
	}
	head := terminal.Paint(a.ColorOut(), paint[l.Verdict])(string(l.Verdict)) + strings.Repeat(" ", verdictColumn-len(l.Verdict)) + fmt.Sprintf("%-*s", promiseColumn, l.Promise)
	put := func(text string) {
		for _, line := range strings.Split(textwrap.Lines(text, width, 2), "\n") {
			fmt.Fprintln(a.Out, strings.TrimRight(head+line, " "))
			head = strings.Repeat(" ", indent)
		}
	}
	title := l.Title
	about := g.Workers
	if l.Copy {
		about = append(about, "in a copy")
	}
	if len(about) > 0 {
		title += " (" + strings.Join(about, ", ") + ")"
	}
	put(title)
	if l.Why != "" {
		put(l.Why)
	}
	if !a.Verbose && l.Verdict != verify.Broken {
		return
	}
	for _, x := range [][2]string{{"tried", l.Tried}, {"inside", l.Inside}, {"outside", l.Outside}, {"control", l.Control}} {
		if x[1] != "" {
			put(x[0] + ": " + x[1])
		}
	}
}
