package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

func (a *program) downCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop and remove a workshop",
		Long: `down removes the containers, networks and volumes of the project and the
secrets of this run. The image and the tool volume that all workshops share
stay as a cache; so do your files. What only carries the project's name, as a
docker-compose.yml of the same name gives it, stays too and is named; where
nothing else is there, down exits with 4.

It compares the files that a program on this machine would run or obey (git
configuration and hooks, editor and tool settings, the workshop's own files)
with what they were at ` + "`up`" + `, and names those that a worker changed or added.`,
		RunE: a.run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.down(ctx, strict)
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 4 if a watched file changed since up, or not all could be checked")
	return cmd
}

func (a *program) down(ctx context.Context, strict bool) error {
	t, err := a.Target(ctx)
	if err != nil {
		return err
	}
	if err := a.CheckDirectory(t); err != nil {
		return err
	}
	ch, err := a.Change(ctx, t.Project)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	e, err := a.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	said := false
	var were engine.Observed
	err = ch.Converge(ctx, e, 0, func() (*engine.Plan, error) {
		seen, err := e.Observe(ctx, t.Project)
		if err != nil {
			return nil, app.EngineError(err)
		}
		plan, err := engine.PlanDown(seen, t.Dir)
		if err == nil && len(plan.Steps) == 0 && !said {
			a.say("project %s: nothing to remove", t.Project)
		}
		for _, other := range seen.Others {
			if err == nil && !said {
				a.say("%s stays: it carries the name of project %s, and is no workshop's", other.Object, t.Project)
			}
		}
		if !said {
			were = seen
		}
		said = true
		return plan, app.EngineError(err)
	})
	if err != nil {
		return err
	}
	if err := app.EngineError(e.Tidy(ctx, t.Project, t.Dir)); err != nil {
		return err
	}
	// Now that no worker can write any more.
	changed := a.CompareWatched(ctx, t.Project, were)
	a.ForgetLearning(t.Project)
	if err := a.Forget(t, were); err != nil {
		return err
	}
	if strict && changed {
		return app.Exit(app.CodeRefused)
	}
	return nil
}
