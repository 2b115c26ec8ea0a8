package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/internal/diag/write"
	"github.com/llmdo/workshop/internal/promise"
)

func (a *program) validateCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check workshop files, without an engine",
		Long: `validate reports every problem of the named workshop files at once, in order
of position, each with what to do. A directory stands for the workshop.yaml in
it; without a PATH the file is found as every command finds it.

Nothing is started and no engine is asked.`,
		Example: `  workshop validate
  workshop validate --strict examples/*/workshop.yaml
  workshop validate --format github         # annotations in a GitHub workflow
  workshop validate --format sarif > workshop.sarif`,
		Args: usageArgs(0, -1),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.validate(ctx, cmd, args, strict)
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings fail too")
	return cmd
}

// validate makes one report of all files.
func (a *program) validate(ctx context.Context, cmd *cobra.Command, args []string, strict bool) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	files, all, err := a.ExpandPaths(args)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	workers, code := 0, app.CodeOK
	for _, file := range files {
		s, err := a.Read(ctx, file)
		if err != nil {
			return err
		}
		list, sources := s.Shown()
		all = append(all, list...)
		for name, data := range sources {
			texts[name] = data
		}
		if s.Workshop == nil {
			continue
		}
		workers += len(s.Workshop.Workers)
		all = append(all, a.waived(s)...)
		code = max(code, a.refused(s))
	}
	if err := a.writeReport(format, all, texts); err != nil {
		return err
	}
	errs, warnings := all.Count(diag.Error), all.Count(diag.Warning)
	a.validateSummary(format, len(files), workers, errs, warnings)
	code = max(code, app.CodeOf(all))
	if strict && warnings > 0 {
		code = max(code, app.CodeInvalid)
	}
	if code != app.CodeOK {
		return app.Exit(code)
	}
	return nil
}

// waived names the promises that don't hold for a workshop on the engine that
// was asked for.
func (a *program) waived(s *app.Source) diag.List {
	not := a.Waived()
	if len(not) == 0 {
		return nil
	}
	return diag.List{{
		Severity: diag.Warning, Code: "process-mode", Summary: "process mode doesn't keep " + promise.Ranges(not),
		Detail: "Tools would run on this machine, as you.", Range: diag.Range{Filename: s.ShownFile(s.Base())},
		Hint: "`workshop capabilities --engine process` says what each of them is",
	}}
}

// refused compiles a valid workshop and gives the code where the result must
// not run; the report of the others goes on.
func (a *program) refused(s *app.Source) int {
	_, err := app.CompileWorkshop(s.Workshop)
	if f, ok := errors.AsType[*app.Failure](err); ok {
		f.Err = fmt.Errorf("%s: %w", s.ShownFile(s.Base()), f.Err)
		a.printFailure(f)
		return f.Code
	}
	return app.CodeOK
}

// writeReport writes the report: it is the result, so the standard output has
// it in every format.
func (a *program) writeReport(format string, list diag.List, texts map[string][]byte) error {
	var form func(io.Writer, diag.List) error
	switch format {
	case "json":
		form = write.JSON
	case "sarif":
		form = write.SARIF
	case "github":
		form = write.GitHub
	default:
		return write.Text(a.Out, list, write.TextOptions{Sources: texts, Color: a.colorOut(), Width: width(a.Out)})
	}
	return form(a.Out, list)
}

// validateSummary closes the text report; the other formats carry counts.
func (a *program) validateSummary(format string, files, workers, errs, warnings int) {
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
