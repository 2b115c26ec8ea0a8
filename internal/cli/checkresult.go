package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
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
	i := slices.IndexFunc(s.Workshop.Workers, func(w workshop.Worker) bool { return w.Name == name })
	if i < 0 {
		var all []string
		for _, w := range s.Workshop.Workers {
			all = append(all, w.Name)
		}
		return usageError(cmd, "%s has no worker %q", s.Base(), name).Hint("%s", app.Suggestion(name, all))
	}
	schema := s.Workshop.Workers[i].Definition.ResultType
	if schema == nil {
		return app.Fail(app.CodeFailed, "%s names no result_type, so nothing is known of its answers", s.Workshop.Workers[i].File).
			Hint("add `result_type:` with a JSON Schema to the worker's file")
	}
	data, shown, err := a.readResult(file, s.Root())
	if err != nil {
		return app.Fail(app.CodeFailed, "check-result: %w", err)
	}
	list, err := checkInTime(ctx, maxCheckTime, schema, shown, data)
	if err != nil {
		return err
	}
	if err := a.writeReport(format, list, map[string][]byte{shown: data}); err != nil {
		return err
	}
	if list.HasErrors() {
		return app.Exit(app.CodeFailed)
	}
	if format == "text" && !a.Quiet {
		fmt.Fprintf(a.Out, "%s is what %s promises\n", shown, name)
	}
	return nil
}

// maxCheckTime is how long an answer is compared with its schema. Alternatives
// that refer to themselves double the work with each level of an answer, which a
// worker writes.
const maxCheckTime = 10 * time.Second

// maxCheckMemory is what that may take besides, in bytes: what is told of an
// alternative holds the whole value, and there may be many of both.
const maxCheckMemory = 512 << 20

// heapBytes are the bytes of all values that are in use, or were until lately.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// checkInTime is [worker.CheckResult] as long as ctx and the limits allow. What is
// not done then goes on until the process ends.
func checkInTime(ctx context.Context, limit time.Duration, schema []byte, name string, data []byte) (diag.List, error) {
	done := make(chan diag.List, 1)
	go func() { done <- worker.CheckResult(schema, name, data) }()
	const hint = "ask the worker for a smaller answer, or simplify the schema: alternatives (anyOf, oneOf), and those that refer to themselves above all, multiply the work"
	end, look, most := time.After(limit), time.NewTicker(20*time.Millisecond), heapBytes()+maxCheckMemory
	defer look.Stop()
	for {
		select {
		case list := <-done:
			return list, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end:
			return nil, app.Fail(app.CodeFailed, "check-result: %s: the comparison of %d bytes with result_type took more than %s", name, len(data), limit).Hint(hint)
		case <-look.C:
			if heapBytes() > most {
				return nil, app.Fail(app.CodeFailed, "check-result: %s: the comparison of %d bytes with result_type took more than %d MiB of memory", name, len(data), maxCheckMemory>>20).Hint(hint)
			}
		}
	}
}

// readResult reads no more than is checked. In the project it follows no symbolic
// link out of that: a worker may have written the file, and what is wrong with a
// text is told by showing it.
func (a *program) readResult(file, project string) (data []byte, shown string, err error) {
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(a.In, worker.MaxResult+1))
		return data, "stdin", err
	}
	name := a.Abs(file)
	if below, relErr := filepath.Rel(project, name); relErr == nil && filepath.IsLocal(below) {
		data, err = boundedfile.ReadFS(app.ProjectDir(project), filepath.ToSlash(below), worker.MaxResult)
	} else {
		data, err = boundedfile.Read(name, worker.MaxResult)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, app.PlainPathError(err))
	}
	return data, file, nil
}
