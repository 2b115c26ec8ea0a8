package lifecycle

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Down is the verb down.
func Down(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.DownOptions
	var strict, all, forget, yes bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop and remove a workshop",
		Long: `down removes the containers, networks and volumes of the project and the
secrets of this run. The image and the tool volume that all workshops share stay,
and so do the caches of workers, which --volumes removes too, and your files.
Objects that only have the project's name, from a docker-compose.yml of the same
name, stay too and are named; if nothing else is there, down exits with 4.

It compares the files that a program on this machine would run or obey (git
configuration and hooks, editor and tool settings, the workshop's own files)
with what they were at the first ` + "`up`" + `, and names those that a worker changed or
added. Later commands name them too, until --accept-watched here or at ` + "`up`" + `.

With --forget nothing is removed: what is known here of a project whose engine is
gone for good is forgotten. What that engine has of it runs if the engine comes back.

With --all it does so with every workshop that runs, on every engine: those that ` + "`ls`" + `
lists. It asks first, unless --yes is given, goes on where one fails, and exits with
the highest code.`,
		Example: `  workshop down
  workshop down --all --yes`,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if all {
				return a.downAll(ctx, cmd, o, strict, yes)
			}
			if forget {
				return a.Forget(ctx)
			}
			changed, err := a.Down(ctx, o)
			if err == nil && strict && changed {
				return app.Exit(app.CodeRefused)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "forget a project whose engine is gone for good; nothing is removed there")
	cmd.Flags().BoolVar(&all, "all", false, "every workshop of yours that runs on this machine")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --all: don't ask")
	cmd.Flags().BoolVar(&o.Caches, "volumes", false, "remove the caches of the workers too")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 4 if a watched file changed since the first up, or not all could be checked")
	cmd.Flags().BoolVar(&o.AcceptWatched, "accept-watched", false, "take watched files as they are now: what changed is named once more")
	cmd.MarkFlagsMutuallyExclusive("forget", "all")
	cmd.MarkFlagsMutuallyExclusive("forget", "volumes")
	return cmd
}
