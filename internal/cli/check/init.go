package check

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// Init is the verb init.
func Init(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.InitOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented workshop.yaml and a worker",
		Long: `init writes workshop.yaml and workers/NAME.md into DIR (default: here). The
result validates, and comes up without pulling an image. A file that exists is
never overwritten.`,
		Example: `  workshop init
  workshop init --name code-review --worker reviewer ./review`,
		Args: command.Args(0, 1),
		RunE: a.Run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			dir := a.Dir
			if len(args) == 1 {
				dir = a.Abs(args[0])
			}
			return a.init(cmd, dir, o)
		}),
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the workshop (default: the directory's)")
	cmd.Flags().StringVar(&o.Worker, "worker", "greeter", "name of the first worker")
	command.FreeText(cmd, "worker") // it is not there yet
	return cmd
}

func (a verbs) init(cmd *cobra.Command, dir string, o app.InitOptions) error {
	if o.Name == "" {
		o.Name = app.ProjectSafe(filepath.Base(dir), "my-workshop")
	}
	for flag, name := range map[string]string{"name": o.Name, "worker": o.Worker} {
		if !app.ValidName(name) {
			return command.UsageError(cmd, "--%s %q: only lower-case letters, digits, _ and -, at most %d", flag, name, app.MaxProjectName)
		}
	}
	wrote, err := a.Init(dir, o)
	for _, path := range wrote {
		fmt.Fprintln(a.Out, a.Shown(path))
	}
	if err != nil {
		return err
	}
	enter := ""
	if dir != a.Dir {
		enter = fmt.Sprintf("`cd %s`, ", shellquote.Path(a.Shown(dir)))
	}
	a.Say("next: %s`workshop up`, then `workshop exec %s -- ls -l /workspace`", enter, o.Worker)
	return nil
}
