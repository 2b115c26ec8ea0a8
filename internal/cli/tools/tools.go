package tools

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/mcpserver"
)

// Command is the verb tools.
func Command(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o options
	client := ""
	cmd := &cobra.Command{
		Use:   "tools [FLAGS] [WORKER]",
		Short: "Offer the tools of workers to an MCP client",
		Long: `tools is an MCP server over the standard input and output. It offers the tools
that WORKER's file lists, and runs each call in the worker; without WORKER, those
of all workers, with the worker's name in front of each tool's. It starts the
workshop if it isn't up, and leaves it up when the client goes.

A call that ` + "`approvals:`" + ` asks about is put to the person at the client, where
the client can ask (elicitation); else it is refused. Each call, and each decision
on it, is a line in workshop/audit/PROJECT.jsonl below $XDG_STATE_HOME
(~/.local/state).

--print-config prints what makes a client start it.`,
		Example: `  workshop tools --print-config claude reviewer
  workshop tools --print-config vscode > .vscode/mcp.json
  npx @modelcontextprotocol/inspector workshop tools reviewer`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: a.CompleteWorkers(1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			worker := ""
			if len(args) > 0 {
				worker = args[0]
			}
			if cmd.Flags().Changed("print-config") {
				return a.toolsConfig(ctx, cmd, client, worker, o)
			}
			return a.tools(ctx, cmd, worker, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.structured, "structured", false, "results as JSON too (structuredContent), for a client that is a program")
	cmd.Flags().StringVar(&client, "print-config", "", "print the configuration of a client: "+strings.Join(mcpClients(), ", "))
	// The only error is a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("print-config", cobra.FixedCompletions(mcpClients(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// toolsConfig is tools --print-config.
func (a verbs) toolsConfig(ctx context.Context, cmd *cobra.Command, client, worker string, o options) error {
	if !slices.Contains(mcpClients(), client) {
		return app.Fail(app.CodeUsage, "--print-config %q: there are %s", client, strings.Join(mcpClients(), ", ")).
			Hint("the entry of any other client: `%s`", strings.TrimSpace("workshop tools --print-config json "+worker))
	}
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	if err := mayServe(s, worker); err != nil {
		return err
	}
	return a.printConfig(client, s, worker, o)
}

// mayServe refuses an entry that no client could start: of a worker that isn't there, or of
// a file that doesn't run.
func mayServe(s *app.Source, worker string) error {
	if err := s.Runs(); err != nil || worker == "" {
		return err
	}
	return s.CheckWorkers([]string{worker})
}

func (a verbs) tools(ctx context.Context, cmd *cobra.Command, worker string, o options) error {
	if terminal.Is(a.In) {
		a.Say("workshop: this speaks MCP on the standard input; `workshop tools --print-config json` prints how a client starts it")
	}
	a.Detached = true // a client starts it wherever it likes
	h, err := a.openTools(ctx, worker, o)
	if err != nil {
		return err
	}
	defer h.Close()
	// What can be said at once ends the command; what takes long continues while
	// the client runs, which waits for it on its first call.
	if err := h.Look(ctx); err != nil {
		return err
	}
	instructions, err := instructions(h, worker)
	if err != nil {
		return err
	}
	h.Begin()
	said := make(chan struct{})
	go func() {
		defer close(said)
		if err := h.Wait(); err != nil && ctx.Err() == nil {
			h.SayFailure(err) // the person may mend it while the client runs
		}
	}()
	err = mcpserver.Run(ctx, mcpserver.Options{
		In: readCloser(a.In), Out: writeCloser(a.Out), Version: a.BuildVersion(), Instructions: instructions, Structured: o.structured,
		Open: func(_ context.Context, asker approval.Asker, client string, changed func()) (*session.Host, error) {
			return h.Host(worker, client, asker, changed)
		},
		Warn:        func(text string) { a.Warn("%s", app.Printable(text)) },
		Hint:        func(text string) { a.Hint("%s", app.Printable(text)) },
		Unreachable: func(e *session.UnreachableError) { h.SayFailure(e) },
	})
	switch failed := h.Failed(); {
	case ctx.Err() != nil:
		return nil // a client's way to end its server
	case err == nil && failed != nil:
		<-said
		return app.Exit(app.CodeOf(failed))
	}
	return err
}

// instructions are those of a Host that is never used.
func instructions(h *app.Tools, worker string) (func(asks bool) string, error) {
	host, err := h.Host(worker, "", nil, nil)
	if err != nil {
		return nil, err
	}
	asked, unasked := host.Instructions(true), host.Instructions(h.Asks())
	return func(asks bool) string {
		if asks {
			return asked
		}
		return unasked
	}, host.Close()
}

func readCloser(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

func writeCloser(w io.Writer) io.WriteCloser {
	if c, ok := w.(io.WriteCloser); ok {
		return c
	}
	return nopWriteCloser{w}
}

type nopWriteCloser struct{ io.Writer }

// Close implements [io.Closer].
func (nopWriteCloser) Close() error { return nil }
