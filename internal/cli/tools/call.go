package tools

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
	workerfile "github.com/llmdo/workshop/workshop/worker"
)

// callClient is who calls, for the audit.
const callClient = "workshop call"

// callOptions are the flags of call.
type callOptions struct {
	options
	describe bool
}

// Call is the verb call.
func Call(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call [FLAGS] WORKER [TOOL [JSON | KEY=VALUE...]]",
		Short: "Call one tool of a worker",
		Long: `call runs one tool of a worker, as an MCP client would through ` + "`tools`" + `, and
prints its text; with --format json its structured result. Without TOOL it lists
what the worker is offered.

Arguments are one JSON object (- reads it from the standard input, @FILE from a
file) or KEY=VALUE, with types as the tool has them: a list takes one element
from each KEY=VALUE, or all from one JSON array; KEY.NAME=VALUE sets a part.

A call that ` + "`approvals:`" + ` asks about is asked on the terminal, also where the
input is piped; without a terminal it is refused (4). A tool that fails is 1. The
tool shell passes on its command's output and code.`,
		Example: `  workshop call reviewer                        # what it is offered
  workshop call reviewer read_file --describe
  workshop call reviewer read_file path=src/main.go max_lines=20
  workshop call reviewer shell argv=git argv=status
  workshop call --format json reviewer search_files '{"pattern": "TODO"}' | jq .`,
		Args:              command.Args(1, -1),
		ValidArgsFunction: a.completeCall,
		Annotations:       command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.call(ctx, cmd, args, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.describe, "describe", false, "print what TOOL does and takes, and call nothing")
	return cmd
}

func (a verbs) call(ctx context.Context, cmd *cobra.Command, args []string, o callOptions) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	worker, words := args[0], args[1:]
	o.Person, o.OneCall, o.Later = format == "text", true, true
	h, err := a.openTools(ctx, worker, o.options)
	if err != nil {
		return err
	}
	defer h.Close()
	show := a.callProgress()
	host, err := h.Host(worker, callClient, show.asker(a.terminalAsker()), nil)
	if err != nil {
		return err
	}
	defer host.Close()
	if len(words) == 0 {
		tools, err := host.Tools(ctx)
		if err != nil {
			return callError(err)
		}
		return a.listTools(worker, tools, format)
	}
	t, err := oneTool(ctx, host, words[0])
	if err != nil {
		return callError(err)
	}
	if o.describe {
		if t == nil {
			return missingTool(ctx, host, worker, words[0])
		}
		return a.describeTool(t, format)
	}
	input, err := a.callInput(cmd, t, words)
	if err != nil {
		return err
	}
	result, err := host.Call(ctx, words[0], input, session.Options{Progress: show.update})
	show.done()
	if err != nil {
		if _, ok := errors.AsType[*tool.NotOfferedError](err); ok && t == nil {
			return missingTool(ctx, host, worker, words[0])
		}
		return callError(err)
	}
	if to, ok := strings.CutPrefix(words[0], "delegate_"); ok && !result.Failed {
		defer a.Hint("a delegation lasts as long as its client, so this one has ended; `workshop call %s` lists what %s can be called for", to, to)
	}
	w := h.Workshop().Workers
	i := slices.IndexFunc(w, func(w workshop.Worker) bool { return w.Name == worker })
	err = a.printResult(&w[i], words[0], result, format)
	if f, ok := errors.AsType[*app.Failure](err); ok && f.Err != nil {
		a.PrintFailure(f)
		err = app.Exit(f.Code)
	}
	h.SayLater()
	return err
}

// callInput are the arguments of a call. What the tool's schema doesn't know is
// a mistake of the command line; a tool that isn't offered is the Host's to
// refuse, whatever its arguments.
func (a verbs) callInput(cmd *cobra.Command, t *session.Tool, words []string) (json.RawMessage, error) {
	s := &toolSchema{}
	if t != nil {
		s = parseSchema(t.InputSchema)
	}
	input, err := a.callArgs(words[1:], s)
	if err != nil {
		return nil, command.UsageError(cmd, "%s: %w", words[0], err)
	}
	if problem, hint := checkArgs(input, s); problem != "" {
		f := app.Fail(app.CodeUsage, "%s: %s", words[0], problem)
		if hint != "" {
			f.Hint("%s", hint)
		}
		return nil, f.Hint("`workshop call %s %s --describe` prints what it takes", cmd.Flags().Arg(0), words[0])
	}
	return input, nil
}

// oneTool returns a tool that the worker is offered, nil for none. A call of one
// waits for no MCP server of the others.
func oneTool(ctx context.Context, host *session.Host, name string) (*session.Tool, error) {
	t, ok := host.Tool(ctx, name)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !ok:
		return nil, nil
	}
	return &t, nil
}

// missingTool says what the worker is offered instead.
func missingTool(ctx context.Context, host *session.Host, worker, name string) error {
	tools, err := host.Tools(ctx)
	if err != nil {
		return callError(err)
	}
	return notOffered(worker, name, tools)
}

// notOffered is a tool that the worker hasn't.
func notOffered(worker, name string, tools []session.Tool) error {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	f := app.Fail(app.CodeRefused, "%s is not offered to %s (B41)", name, worker)
	near, ok := workerfile.ToolName(name) // as the worker's file may have it
	if !ok || !slices.Contains(names, near) {
		near = app.Nearest(name, names)
	}
	if near != "" {
		f.Hint("did you mean %q?", near)
	}
	if len(names) == 0 {
		return f.Hint("%s has no tools: its definition lists none", worker)
	}
	return f.Hint("it has %s", strings.Join(names, ", "))
}

// callError adds the exit code and hints to an error of a Host.
func callError(err error) error {
	if f, ok := errors.AsType[*app.Failure](err); ok {
		return f
	}
	if e, ok := errors.AsType[*tool.NotOfferedError](err); ok {
		f := app.Fail(app.CodeRefused, "%w", e)
		if e.Why == "" && len(e.Offered) > 0 {
			f.Hint("it has %s", strings.Join(e.Offered, ", "))
		}
		return f
	}
	if e, ok := errors.AsType[*approval.RefusedError](err); ok {
		f := app.Fail(app.CodeRefused, "%s", e.Person())
		if e.Hint != "" {
			f.Hint("%s", e.PersonHint())
		}
		return f
	}
	if e, ok := errors.AsType[*session.ArgumentsError](err); ok {
		return app.Fail(app.CodeUsage, "%w", e)
	}
	if e, ok := errors.AsType[*session.LostError](err); ok {
		return app.Fail(app.CodeEngine, "%w", e)
	}
	if _, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return app.EngineError(err)
	}
	return app.Fail(app.CodeFailed, "%w", err)
}

// completeCall completes workers, then tools, then the keys of arguments.
func (a verbs) completeCall(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return command.Beginning(prefix, nil, a.WorkerNames(cmd)), cobra.ShellCompDirectiveNoFileComp
	}
	s := a.CompletionSource(cmd)
	if s == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	w := s.Worker(args[0])
	if w == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 1 {
		var names []string
		for _, t := range w.Definition.Tools {
			if _, ours := tool.Find(t.Name); ours && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
		for _, to := range w.Definition.DelegatesTo {
			names = append(names, "delegate_"+to.Name)
		}
		return command.Beginning(prefix, nil, names), cobra.ShellCompDirectiveNoFileComp
	}
	var keys []string
	if spec, ok := tool.Find(args[1]); ok {
		for _, key := range argumentNames(spec.Args) {
			keys = append(keys, key+"=")
		}
	}
	return command.Beginning(prefix, nil, keys), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// argumentNames are the names of a struct of arguments in JSON.
func argumentNames(args any) []string {
	var names []string
	t := reflect.TypeOf(args)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
