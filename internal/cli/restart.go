package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
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
	cmd.Flags().Duration("wait-timeout", defaultWaitTimeout, "how long to wait until every worker is ready")
	return cmd
}

func (a *program) restart(ctx context.Context, cmd *cobra.Command, names []string) error {
	c, err := a.compile(ctx)
	if err != nil {
		return err
	}
	if err := c.workers(cmd, names); err != nil {
		return err
	}
	unlock, err := a.lock(ctx, c.project)
	if err != nil {
		return err
	}
	defer unlock()
	t := c.target()
	e, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	return a.converge(ctx, e, a.set.waitTimeout, func() (*engine.Plan, error) {
		seen, err := a.look(ctx, e, t, false)
		if err != nil {
			return nil, err
		}
		if len(seen.Containers) == 0 {
			return nil, notUp(t)
		}
		plan, err := engine.PlanRestart(engine.Desired{Compiled: c.asRunning(), Only: names}, seen)
		return plan, engineError(err)
	})
}

// asRunning is the project under its name on the engine and with its
// directory: all that is needed of the machine to restart what is there.
func (c *compiled) asRunning() *compose.Compiled {
	running, project := *c.compiled, *c.compiled.Project
	project.Name = c.project
	running.Project = &project
	running.Facts = &compose.Facts{Project: c.project, ProjectDir: c.target().dir}
	return &running
}
