package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

func (a *program) checkResultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check-result WORKER FILE",
		Short: "Check a worker's answer against its result_type",
		Long: `check-result compares a worker's answer, which is JSON, with the JSON Schema
that the worker's file names as result_type (or output_schema_ref). Everything
that is wrong is told, with line and column. FILE is - for standard input. It
needs no engine.

The exit code is 0 for an answer that is as it should be, 1 for one that isn't.`,
		Example: `  workshop check-result code-reviewer report.json
  orchestrate reviewer | workshop check-result code-reviewer - --format json`,
		Args:              usageArgs(2, 2),
		ValidArgsFunction: a.completeWorkers(1),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			return a.checkResult(ctx, cmd, args[0], args[1], format)
		}),
	}
}

func (a *program) checkResult(ctx context.Context, cmd *cobra.Command, name, file, format string) error {
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	w := s.Worker(name)
	if w == nil {
		return usageError(cmd, "%s has no worker %q", s.Base(), name).Hint("%s", app.Suggestion(name, s.WorkerNames()))
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
