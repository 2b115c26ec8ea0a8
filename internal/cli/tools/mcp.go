package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/mcpconfig"
)

// MCP is the group of commands about MCP clients.
func MCP(p *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Connect MCP clients",
		Long: `mcp connects the clients that use a workshop's workers: an MCP client starts
` + "`workshop tools`" + `, which offers it the tools of a worker.`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Unknown,
	}
	cmd.AddCommand(verbs{p}.mcpInstall())
	return cmd
}

// installOptions are the flags of mcp install.
type installOptions struct{ write, replace, remove bool }

func (a verbs) mcpInstall() *cobra.Command {
	var o installOptions
	var files []string
	for _, c := range mcpconfig.Clients() {
		files = append(files, fmt.Sprintf("  %-6s  %s", c.Name, c.File))
	}
	cmd := &cobra.Command{
		Use:   "install [FLAGS] CLIENT [WORKER]",
		Short: "Write the server of a worker into the file of a client",
		Long: `install adds a server to a client's file of this project, next to workshop.yaml:

` + strings.Join(files, "\n") + `

The client then starts ` + "`workshop tools WORKER`" + `. It prints what it would change; with
--write it writes that, and keeps every other byte of the file. Another server of the
same name stays, and is shown, unless --replace. The entry names paths of this
machine. Without WORKER the client gets the tools of all workers, with their names in
front.`,
		Example: `  workshop mcp install claude reviewer
  workshop mcp install claude reviewer --write
  workshop mcp install vscode --remove --write`,
		Args: command.Args(1, 2),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.replace && o.remove {
				return command.UsageError(cmd, "--replace and --remove exclude each other")
			}
			at := slices.IndexFunc(mcpconfig.Clients(), func(c mcpconfig.Client) bool { return c.Name == args[0] })
			if at < 0 {
				names := mcpClients()
				return app.Fail(app.CodeUsage, "no client %q: there are %s", app.Printable(args[0]), strings.Join(names[:len(names)-1], ", ")).
					Hint("the entry of any other client: `%s`", strings.Join(append([]string{"workshop tools --print-config json"}, args[1:]...), " "))
			}
			worker := ""
			if len(args) > 1 {
				worker = args[1]
			}
			return a.install(ctx, mcpconfig.Clients()[at], worker, o)
		}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			switch names := mcpClients(); len(args) {
			case 0:
				return command.Beginning(prefix, nil, names[:len(names)-1]), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return command.Beginning(prefix, nil, a.WorkerNames(cmd)), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.write, "write", false, "write the file")
	f.BoolVar(&o.replace, "replace", false, "replace another server of the same name")
	f.BoolVar(&o.remove, "remove", false, "remove the server")
	return cmd
}

// installLine is the command line of mcp install.
func installLine(client, worker string) string {
	return strings.TrimSpace("workshop mcp install " + client + " " + worker)
}

func (a verbs) install(ctx context.Context, client mcpconfig.Client, worker string, o installOptions) error {
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	if !o.remove { // what isn't there any more can be removed
		if err := mayServe(s, worker); err != nil {
			return err
		}
	}
	name := serverName(s.Workshop.Name.V, worker)
	c, err := a.ChangeClient(s, app.ClientEntry{
		Client: client, Name: name, Server: a.mcpServer(s, worker, options{}), Replace: o.replace, Remove: o.remove,
	})
	if err != nil {
		return err
	}
	line := installLine(client.Name, worker)
	if c.Suspect != "" && (!o.write || c.Lines == nil) { // else it is refused
		a.Warn("%s: read it before the client does", c.Suspect)
	}
	switch {
	case c.Lines == nil && o.remove:
		a.Say("%s has no server %s; nothing to remove", c.File, name)
		return nil
	case c.Lines == nil:
		a.Say("%s has the server %s already", c.File, name)
		return nil
	case c.Taken:
		a.showClientLines(c)
		return app.Fail(app.CodeFailed, "%s has another server %s; nothing was written", c.File, name).
			Hint("`%s --replace --write` replaces it", line)
	case !o.write:
		a.showClientLines(c)
		if o.remove {
			line += " --remove"
		} else if o.replace {
			line += " --replace"
		}
		a.Hint("nothing was written; `%s --write` writes it", line)
		return nil
	}
	if err := a.WriteClient(ctx, c); err != nil {
		return err
	}
	a.showClientLines(c)
	if !o.remove {
		a.Say("%s; the file names paths of this machine", client.Note)
	}
	return nil
}

// showClientLines prints the lines of the client's file that differ.
func (a verbs) showClientLines(c *app.ClientChange) {
	title := c.File
	if c.New {
		title += " (new)"
	}
	fmt.Fprintln(a.Out, title)
	for _, line := range c.Lines {
		fmt.Fprintln(a.Out, app.Printable(line))
	}
}
