package check

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// Init is the verb init.
func Init(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.InitOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a workshop.yaml for what a directory has",
		Long: `init looks at DIR (default: here): manifests and lockfiles of package managers,
Makefile, Dockerfile, git, definitions of agents, and where this machine has the
programs that they need. It writes a commented workshop.yaml for them, and shows
what it found and what the file grants for it. The result validates, and comes up
without pulling an image.

--from imports a devcontainer.json, .mcp.json or compose.yaml and names what has no
counterpart, or would open the boundary of a worker, with its place.

In a directory with none of that, or with --bare, it writes a template and
workers/NAME.md. A file that exists is never overwritten.`,
		Example: `  workshop init
  workshop init --dry-run
  workshop init --from .devcontainer/devcontainer.json
  workshop init --bare --name code-review --worker reviewer ./review`,
		Args: command.Args(0, 1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			dir := a.Dir
			if len(args) == 1 {
				dir = a.Abs(args[0])
			}
			return a.init(ctx, cmd, dir, o)
		}),
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the workshop (default: the directory's)")
	cmd.Flags().StringVar(&o.Worker, "worker", "", "name of the first worker (default: dev, in the template greeter)")
	cmd.Flags().BoolVar(&o.Bare, "bare", false, "look at nothing: write the template")
	cmd.Flags().StringVar(&o.From, "from", "", "import a devcontainer.json, .mcp.json or compose.yaml")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print the file and write nothing")
	command.FreeText(cmd, "worker") // it is not there yet
	return cmd
}

func (a verbs) init(ctx context.Context, cmd *cobra.Command, dir string, o app.InitOptions) error {
	if o.Bare && o.From != "" {
		return command.UsageError(cmd, "--bare and --from exclude each other: one looks at nothing, the other at a file")
	}
	for flag, name := range map[string]string{"name": o.Name, "worker": o.Worker} {
		if name != "" && !app.ValidName(name) {
			return command.UsageError(cmd, "--%s %q: only lower-case letters, digits, _ and -, at most %d", flag, name, app.MaxProjectName)
		}
	}
	in, err := a.Init(ctx, dir, o)
	if err == nil {
		a.sayChosen(in.Chosen)
	}
	if o.DryRun && len(in.Text) > 0 {
		_, _ = a.Out.Write(in.Text)
	}
	for _, path := range in.Wrote {
		fmt.Fprintln(a.Out, a.Shown(path))
	}
	if err != nil {
		return err
	}
	if o.DryRun {
		return nil
	}
	commands := append([]string{"workshop up"}, in.Next...)
	if dir != a.Dir {
		commands = append([]string{"cd " + shellquote.Path(a.Shown(dir))}, commands...)
	}
	last := len(commands) - 1
	a.Say("next: `%s`, then `%s`", strings.Join(commands[:last], "`, `"), commands[last])
	return nil
}

// sayChosen shows what was found and what the file has for it.
func (a verbs) sayChosen(list []app.Chosen) {
	if len(list) == 0 || a.Quiet {
		return
	}
	t := terminal.NewTable(a.Err, a.Columns(a.Err))
	for _, c := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Path, c.What, c.Gives)
	}
	_ = t.Flush() // what can't be written there can't be said either
}
