package check

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Result is the verb check-result.
func Result(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "check-result WORKER FILE",
		Short: "Check a worker's answer against its result_type",
		Long: `check-result compares a worker's answer, which is JSON, with the JSON Schema
that the worker's file names as result_type (or output_schema_ref). Every
problem is reported with line and column. FILE is - for standard input. It
needs no engine.

The exit code is 0 for a valid answer, and 1 for one that isn't.`,
		Example: `  workshop check-result code-reviewer report.json
  orchestrate reviewer | workshop check-result code-reviewer - --format json`,
		Args:              command.Args(2, 2),
		ValidArgsFunction: a.CompleteWorkers(1),
		Annotations:       command.Formats("text", "json", "sarif", "github"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			return a.checkResult(ctx, cmd, args[0], args[1], format)
		}),
	}
}

func (a verbs) checkResult(ctx context.Context, cmd *cobra.Command, name, file, format string) error {
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	w := s.Worker(name)
	if w == nil {
		return command.UsageError(cmd, "%s has no worker %q", s.Base(), name).Hint("%s", app.Suggestion(name, s.WorkerNames()))
	}
	r, err := a.CheckResult(ctx, s, w, file, a.In)
	if err != nil {
		return err
	}
	if err := a.writeReport(format, r.Diagnostics, map[string][]byte{r.Name: r.Text}); err != nil {
		return err
	}
	if r.Diagnostics.HasErrors() {
		return app.Exit(app.CodeFailed)
	}
	if format == "text" && !a.Quiet {
		fmt.Fprintf(a.Out, "%s is what %s promises\n", r.Name, name)
	}
	return nil
}
