package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// Doctor is the verb doctor.
func Doctor(p *command.Program) *cobra.Command {
	a := verbs{p}
	bundle, report := "", false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what keeps workshops from running on this machine",
		Long: `doctor looks at the engine, the kernel, control groups, namespaces, security modules,
resolvers, the proxy, certificates, disks, settings and what workshops left, and says
what to do about what it finds. Without --engine it is about the engine that ` + "`up`" + ` would
choose here. It changes nothing, and fails if something is an error.

With --bundle it also writes a new archive for a bug report (.tar.gz, or .zip), with
the values of variables, secrets and the names of hosts taken out: read it before you
send it. With --report it prints one line alone, for docs/engines-tried.md: what this
machine is, and which kernels workers can have on it.`,
		Example: `  workshop doctor
  workshop doctor -v                        # what is fine, too
  workshop doctor --engine namespace --format json
  workshop doctor --bundle report.tar.gz`,
		Annotations: command.Formats("text", "json"),
		RunE: a.RunAnyway(func(ctx context.Context, cmd *cobra.Command, settings error) error {
			if report {
				return a.tried(ctx, settings)
			}
			return a.doctor(ctx, cmd, settings, bundle)
		}),
	}
	cmd.Flags().StringVar(&bundle, "bundle", "", "write a redacted archive for a bug report to this new file")
	_ = cmd.MarkFlagFilename("bundle", "tar.gz", "tgz", "zip")
	cmd.Flags().BoolVar(&report, "report", false, "print this machine's line for docs/engines-tried.md")
	cmd.MarkFlagsMutuallyExclusive("report", "bundle")
	cmd.AddCommand(a.doctorPortsCommand())
	return cmd
}

func (a verbs) doctor(ctx context.Context, cmd *cobra.Command, settings error, bundle string) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	env := *a.Env
	env.Version = a.BuildVersion()
	r := env.Doctor(ctx, settings)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if format == "json" {
		err = a.WriteJSON(r)
	} else {
		a.printDoctor(r)
	}
	if err == nil && bundle != "" {
		err = a.writeBundle(ctx, &env, r, bundle)
	}
	if err == nil && r.Level == doctor.Error {
		err = app.Exit(app.CodeFailed)
	}
	return err
}

// tried prints what this machine is.
func (a verbs) tried(ctx context.Context, settings error) error {
	env := *a.Env
	env.Version = a.BuildVersion()
	line, err := env.TriedLine(ctx, env.Doctor(ctx, settings))
	if err == nil {
		fmt.Fprintln(a.Out, line)
	}
	return err
}

// printDoctor prints problems, and a line for each group without one.
func (a verbs) printDoctor(r app.DoctorReport) {
	for _, group := range doctor.Groups() {
		found := r.Of(group)
		if len(found) == 0 {
			continue
		}
		shown := found
		if !a.Verbose {
			shown = slices.DeleteFunc(slices.Clone(found), func(f doctor.Finding) bool { return f.Level == doctor.OK })
		}
		if len(shown) == 0 {
			if !a.Quiet {
				a.doctorLine(doctor.OK, group+" ("+strings.Join(checkNames(found), ", ")+")", "")
			}
			continue
		}
		for i, f := range shown {
			do := f.Do
			if i+1 < len(shown) && shown[i+1].Do == do {
				do = "" // once, below the last that it helps against
			}
			a.doctorLine(f.Level, group+": "+f.Text, do)
		}
	}
	a.Say("%s", doctorSummary(r.Findings))
}

// doctorLine is one finding: its level in a column, and below it what to do.
func (a verbs) doctorLine(level doctor.Level, text, do string) {
	const column = 9
	paint := map[doctor.Level]color.Attribute{doctor.OK: color.FgGreen, doctor.Warning: color.FgYellow, doctor.Error: color.FgRed}
	head := terminal.Paint(a.ColorOut(), paint[level])(string(level)) + strings.Repeat(" ", column-len(level))
	write := func(head, text string) {
		width := a.Columns(a.Out)
		if width > 0 {
			width = max(20, width-column)
		}
		for i, line := range strings.Split(textwrap.Lines(text, width, 2), "\n") {
			if i > 0 {
				head = strings.Repeat(" ", column)
			}
			fmt.Fprintln(a.Out, strings.TrimRight(head+line, " "))
		}
	}
	write(head, app.Indent(text))
	if do != "" {
		write(strings.Repeat(" ", column), a.Pasteable(app.Indent(do)))
	}
}

// checkNames are the names of findings, each once.
func checkNames(list []doctor.Finding) (names []string) {
	for _, f := range list {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func doctorSummary(list []doctor.Finding) string {
	errs, warnings := 0, 0
	for _, f := range list {
		switch f.Level {
		case doctor.Error:
			errs++
		case doctor.Warning:
			warnings++
		}
	}
	if errs+warnings == 0 {
		return "no problems found"
	}
	return app.Count(errs, "error") + ", " + app.Count(warnings, "warning")
}

// writeBundle writes the archive and says what is in it. The standard output has the
// report alone.
func (a verbs) writeBundle(ctx context.Context, env *app.Env, r app.DoctorReport, path string) error {
	b, err := env.Bundle(ctx, r)
	if err != nil {
		return err
	}
	if err := b.Write(env.Abs(path)); err != nil {
		return err
	}
	a.Say("wrote %s, which only you can read:\n  %s", env.Shown(env.Abs(path)), strings.ReplaceAll(strings.TrimRight(b.List(), "\n"), "\n", "\n  "))
	a.Say("read it before you send it: secrets that nothing names as such may be in it")
	return nil
}
