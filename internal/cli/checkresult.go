package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

func (a *app) checkResultCommand() *cobra.Command {
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
		RunE: a.run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			return a.checkResult(cmd, args[0], args[1], format)
		}),
	}
}

func (a *app) checkResult(cmd *cobra.Command, name, file, format string) error {
	s, err := a.load()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.w.Workers, func(w workshop.Worker) bool { return w.Name == name })
	if i < 0 {
		var all []string
		for _, w := range s.w.Workers {
			all = append(all, w.Name)
		}
		return usageError(cmd, "%s has no worker %q", s.file, name).hint("%s", suggestion(name, all))
	}
	schema := s.w.Workers[i].Definition.ResultType
	if schema == nil {
		return fail(codeFailed, "%s names no result_type, so nothing is known of its answers", s.w.Workers[i].File).
			hint("add `result_type:` with a JSON Schema to the worker's file")
	}
	data, shown, err := a.readResult(file)
	if err != nil {
		return fail(codeFailed, "check-result: %w", err)
	}
	list := worker.CheckResult(schema, shown, data)
	if err := a.writeReport(format, list, map[string][]byte{shown: data}); err != nil {
		return err
	}
	if list.HasErrors() {
		return exit(codeFailed)
	}
	if format == "text" && !a.set.quiet {
		fmt.Fprintf(a.Out, "%s is what %s promises\n", shown, name)
	}
	return nil
}

// readResult reads no more than is checked.
func (a *app) readResult(file string) (data []byte, shown string, err error) {
	in, shown := a.In, "stdin"
	if file != "-" {
		f, err := os.Open(a.abs(file))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, plainPathError(err))
		}
		defer f.Close()
		in, shown = f, file
	}
	data, err = io.ReadAll(io.LimitReader(in, worker.MaxResult+1))
	return data, shown, err
}
