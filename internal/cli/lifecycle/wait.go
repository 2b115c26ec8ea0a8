package lifecycle

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Wait is the verb wait.
func Wait(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "wait [WORKER...]",
		Short: "Wait until workers end",
		Long: `wait blocks until the named workers have ended, or all that run, and prints a line
for each. As in Compose, the exit code is that of the one that ended last; 125 where
workshop itself failed. A worker runs until ` + "`down`" + `, unless it is stopped, OOM-killed or
loses a mount.`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: a.CompleteWorkers(0),
		Annotations:       command.PassesExitCode(),
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			code, err := a.Await(ctx, args, a.ProjectGiven(), func(container string, code int) {
				fmt.Fprintf(a.Out, "container %q exited with status code %d\n", container, code)
			})
			if err == nil && code != 0 {
				err = app.Exit(code)
			}
			return err
		}),
	}
}
