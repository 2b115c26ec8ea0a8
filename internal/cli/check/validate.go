package check

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/diagtext"
)

// Validate is the verb validate.
func Validate(p *command.Program) *cobra.Command {
	a := verbs{p}
	strict := false
	cmd := &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Check workshop files, without an engine",
		Long: `validate reports every problem of the named workshop files, in order of position,
each with what to do. A directory means the workshop.yaml in it; without a PATH the
file is found as every command finds it.

Nothing is started and no engine is asked.`,
		Example: `  workshop validate
  workshop validate --strict examples/*/workshop.yaml
  workshop validate --format github         # annotations in a GitHub workflow
  workshop validate --format sarif > workshop.sarif`,
		Args:        command.Args(0, -1),
		Annotations: command.Formats("text", "json", "sarif", "github"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.validate(ctx, cmd, args, strict)
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings fail too")
	return cmd
}

// validate makes one report of all files.
func (a verbs) validate(ctx context.Context, cmd *cobra.Command, args []string, strict bool) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	v, err := a.Validate(ctx, args)
	if err != nil {
		return err
	}
	for _, f := range v.Refused {
		a.PrintFailure(f)
	}
	if err := a.writeReport(format, v.Diagnostics, v.Sources); err != nil {
		return err
	}
	errs, warnings := v.Diagnostics.Count(diag.Error), v.Diagnostics.Count(diag.Warning)
	a.validateSummary(format, v.Files, v.Workers, errs, warnings)
	if i := slices.IndexFunc(v.Diagnostics, func(d diag.Diagnostic) bool { return d.Code != "" }); i >= 0 && format == "text" && !a.Quiet {
		a.WriteLine(a.Pasteable("`workshop explain " + v.Diagnostics[i].Code + "` says more, with an example"))
	}
	code := v.Code()
	if strict && warnings > 0 {
		code = max(code, app.CodeInvalid)
	}
	if code != app.CodeOK {
		return app.Exit(code)
	}
	return nil
}

// writeReport writes the report: it is the result, so the standard output has
// it in every format.
func (a verbs) writeReport(format string, list diag.List, texts map[string][]byte) error {
	var form func(io.Writer, diag.List) error
	switch format {
	case "json":
		form = diagtext.JSON
	case "sarif":
		form = diagtext.SARIF
	case "github":
		form = diagtext.GitHub
	default:
		return diagtext.Text(a.Out, list, diagtext.TextOptions{Sources: texts, Color: a.ColorOut(), Width: a.Columns(a.Out)})
	}
	return form(a.Out, list)
}

// validateSummary closes the text report; the other formats carry counts.
func (a verbs) validateSummary(format string, files, workers, errs, warnings int) {
	if format != "text" || a.Quiet {
		return
	}
	if errs+warnings > 0 {
		fmt.Fprintln(a.Out)
	}
	switch {
	case errs+warnings == 0:
		fmt.Fprintf(a.Out, "%s, %s: no problems\n", app.Count(files, "file"), app.Count(workers, "worker"))
	default:
		fmt.Fprintf(a.Out, "%s: %s, %s\n", app.Count(files, "file"), app.Count(errs, "error"), app.Count(warnings, "warning"))
	}
}
