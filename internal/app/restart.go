package app

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Restart stops and starts the named workers, or everything, as they were brought
// up. Where what runs must be what the lock says, it must be so before (B46).
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
	if env.frozen(c.Source) {
		if err := env.frozenRestart(ctx, e, c, names); err != nil {
			return err
		}
	}
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

// frozenRestart refuses a restart of what isn't as the lock says.
func (env *Env) frozenRestart(ctx context.Context, e *Running, c *Project, names []string) error {
	if err := env.CheckLock(ctx, c.Source); err != nil {
		return err
	}
	seen, err := e.Look(ctx, false)
	if err != nil || len(seen.Containers) == 0 {
		return err // not up
	}
	ready, err := e.collect(ctx, c)
	if err != nil {
		return EngineError(err)
	}
	return e.refuseOlder(ctx, ready, names)
}
