package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

func (a *program) restartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart [WORKER…]",
		Short: "Stop and start workers without changing them",
		Long: `restart stops and starts the named workers, or everything. What changed in the
workshop file since it came up is not applied; ` + "`up`" + ` does that.`,
		Args:              usageArgs(0, -1),
		ValidArgsFunction: a.completeWorkers(0),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.restart(ctx, cmd, args)
		}),
	}
	cmd.Flags().Duration("wait-timeout", app.DefaultWaitTimeout, "how long to wait until every worker is ready")
	return cmd
}

func (a *program) restart(ctx context.Context, cmd *cobra.Command, names []string) error {
	c, err := a.Compile(ctx)
	if err != nil {
		return err
	}
	if err := c.CheckWorkers(names); err != nil {
		return err
	}
	ch, err := a.Change(ctx, c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	t := c.Target()
	e, err := a.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	return ch.Converge(ctx, e, a.Settings.WaitTimeout, func() (*engine.Plan, error) {
		seen, err := e.Look(ctx, false)
		if err != nil {
			return nil, err
		}
		if len(seen.Containers) == 0 {
			return nil, app.NotUp(t)
		}
		plan, err := engine.PlanRestart(engine.Desired{Compiled: c.AsRunning(), Only: names}, seen)
		return plan, app.EngineError(err)
	})
}
