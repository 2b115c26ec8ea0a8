package lifecycle

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Restart is the verb restart.
func Restart(p *command.Program) *cobra.Command {
	a := verbs{p}
	cmd := &cobra.Command{
		Use:   "restart [WORKER...]",
		Short: "Stop and start workers without changing them",
		Long: `restart stops and starts the named workers, or everything. What changed in the
workshop file since it came up is not applied; ` + "`up`" + ` does that. --frozen, the default
in continuous integration where there is a workshop.lock, refuses a workshop that
isn't as the lock says (B46).`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: a.CompleteWorkers(0),
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.Restart(ctx, args)
		}),
	}
	command.FrozenFlag(cmd)
	cmd.Flags().Duration("wait-timeout", app.DefaultWaitTimeout, "how long to wait until every worker is ready")
	return cmd
}
