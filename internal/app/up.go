package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// UpOptions say how a workshop is brought up. Implicit is a start that nobody
// asked for: a call needs it.
type UpOptions struct {
	DryRun, Strict, Implicit bool
	// WithoutCredentials leases none: endpoints that have one answer 503.
	WithoutCredentials bool
	// AcceptWatched accepts watched files (B8) as they are, and of the workshop's own
	// what was shown with that digest; [AcceptAll]: whatever there is; empty: nothing.
	AcceptWatched string
	// Ask puts a yes-or-no question to a person; nil if nobody is there.
	Ask func(ctx context.Context, question string) (bool, error)
}

// Up makes what a run needs on this machine, plans, and carries it out. ready is c
// as [Env.Prepare] returned it.
func (ch *Change) Up(ctx context.Context, r *Running, c, ready *Project, names []string, o UpOptions) (err error) {
	env := ch.env
	if err := env.CheckDirectory(ctx, c.ProjectRef); err != nil {
		return err
	}
	noted, _ := env.Record(c.Name)
	if err := c.checkRoom(noted); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			env.forgetIfNothingIs(ctx, r, noted)
		}
	}()
	created := ready.Compiled.Facts.ToCreate
	if ready, err = ch.Make(ctx, r, c, ready); err != nil {
		return err
	}
	var first *engine.Plan
	var needs *creds
	err = ch.converge(ctx, r, env.Settings.WaitTimeout, func() (*engine.Plan, error) {
		plan, err := env.Plan(ctx, r, ready, names, o)
		if err != nil || first != nil {
			return plan, err
		}
		first = plan
		env.sayFacts(ready.Workshop, ready.Compiled.Facts, created)
		if err := env.Watch(ctx, ready, r.Capabilities().Contained, o); err != nil {
			return nil, err
		}
		if needs, err = env.agreeCredentials(ctx, r, ready, o.WithoutCredentials); err != nil {
			return nil, err
		}
		env.SayEnding(ctx, r, plan)
		env.sayFreshCaches(plan)
		env.sayOwnKernels(plan)
		return plan, nil
	})
	if err != nil && first != nil {
		return env.rollBack(ctx, r, first.Compiled, first.Observed, err)
	}
	if err == nil {
		env.keepPorts(ctx, r, ready)
		env.keepGrants(ready, names, !o.Implicit)
		err = env.lease(ctx, r, ready, needs)
	}
	return err
}

// forgetIfNothingIs removes secrets again where a start failed before there
// was a container that uses them, and the record, unless it was noted before
// of the same directory.
func (env *Env) forgetIfNothingIs(ctx context.Context, r *Running, noted *facts.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	seen, err := r.Observe(ctx, r.Name)
	ours := func(k engine.Container) bool { return k.Directory == r.Dir }
	if err == nil && !slices.ContainsFunc(seen.Containers, ours) {
		var forgotten error
		now, _ := env.Record(r.Name)
		if noted == nil || now != nil && now.Dir != noted.Dir {
			forgotten = env.forget(r.ProjectRef, engine.Observed{}, false)
		} else {
			forgotten = errors.Join(env.forgetSecrets(r.ProjectRef, noted, engine.Observed{}), noted.Save())
		}
		if err := errors.Join(forgotten, EngineError(r.Tidy(ctx, r.Name, r.Dir))); err != nil {
			env.warn("%v", err)
		}
	}
}

// Plan observes and plans. Images that are always pulled are pulled before,
// because only then it shows whether they changed; a dry run plans with what
// is there.
func (env *Env) Plan(ctx context.Context, e engine.Engine, ready *Project, names []string, o UpOptions) (*engine.Plan, error) {
	d := engine.Desired{Compiled: ready.Compiled, Only: names}
	var err error
	if d.Builds, err = env.buildHashes(ctx, ready); err != nil {
		return nil, err
	}
	pull, err := engine.PlanPull(d)
	if err != nil {
		return nil, EngineError(err)
	}
	if len(pull.Steps) > 0 && !o.DryRun {
		if err := env.Apply(ctx, e, pull, 0); err != nil {
			return nil, err
		}
		d.Pulled = true
	}
	seen, err := e.Observe(ctx, ready.Name, engine.DesiredImages(d)...)
	if err != nil {
		return nil, EngineError(err)
	}
	plan, err := engine.PlanUp(d, seen)
	if err != nil {
		return nil, EngineError(err)
	}
	if o.DryRun {
		plan.Steps = append(slices.Clone(pull.Steps), plan.Steps...)
	}
	return plan, nil
}
