package app

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Restart stops and starts the named workers, or everything, as they were brought
// up.
func (env *Env) Restart(ctx context.Context, names []string) error {
	c, err := env.Compile(ctx)
	if err != nil {
		return err
	}
	if err := c.CheckWorkers(names); err != nil {
		return err
	}
	ch, err := env.Change(ctx, c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	t := c.ProjectRef
	e, err := env.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	said := false
	return ch.converge(ctx, e, env.Settings.WaitTimeout, func() (*engine.Plan, error) {
		seen, err := e.Look(ctx, false)
		if err != nil {
			return nil, err
		}
		if len(seen.Containers) == 0 {
			return nil, notUp(t)
		}
		plan, err := engine.PlanRestart(engine.Desired{Compiled: c.asRunning(), Only: names}, seen)
		if err != nil {
			return nil, EngineError(err)
		}
		if !said {
			env.SayEnding(ctx, e, plan)
			said = true
		}
		return plan, nil
	})
}
