package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

func (a *program) restartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart [WORKER…]",
		Short: "Stop and start workers without changing them",
		Long: `restart stops and starts the named workers, or everything. What changed in the
workshop file since it came up is not applied; ` + "`up`" + ` does that.`,
		Args:              usageArgs(0, -1),
		ValidArgsFunction: a.completeWorkers(0),
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.Restart(ctx, args)
		}),
	}
	cmd.Flags().Duration("wait-timeout", app.DefaultWaitTimeout, "how long to wait until every worker is ready")
	return cmd
}
