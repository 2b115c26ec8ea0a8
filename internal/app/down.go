package app

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// DownOptions say what else goes. Caches: those of the workers too.
type DownOptions struct {
	AcceptWatched, Caches bool
	// unless, if not nil, keeps everything if it returns an error about what is there.
	unless func(engine.Observed) error
}

// Down removes what is up of the project that the caller works on, with the secrets
// of the run, and reports whether a watched file changed since the first `up` (B8). AcceptWatched
// takes those as they are.
func (env *Env) Down(ctx context.Context, o DownOptions) (changed bool, err error) {
	t, err := env.Find(ctx)
	if err != nil {
		return false, err
	}
	return env.downOf(ctx, t, o)
}

func (env *Env) downOf(ctx context.Context, t ProjectRef, o DownOptions) (changed bool, err error) {
	if err := env.CheckDirectory(ctx, t); err != nil {
		return false, err
	}
	ch, err := env.Change(ctx, t.Name)
	if err != nil {
		return false, err
	}
	defer ch.Unlock()
	e, err := env.Connect(ctx, t, nil)
	if err != nil {
		return false, err
	}
	defer e.Close()
	if err := env.checkPlace(ctx, e); err != nil {
		return false, err
	}
	said := false
	var were engine.Observed
	err = ch.converge(ctx, e, 0, func() (*engine.Plan, error) {
		seen, err := e.Observe(ctx, t.Name)
		if err != nil {
			return nil, EngineError(err)
		}
		if o.unless != nil {
			if err := o.unless(seen); err != nil {
				return nil, err
			}
		}
		plan, err := engine.PlanDown(seen, t.Dir)
		if o.Caches {
			plan, err = engine.PlanDownWithCaches(seen, t.Dir)
		}
		if err == nil && len(plan.Steps) == 0 && !said {
			env.say("project %s: nothing to remove", t.Name)
		}
		if !o.Caches && !said {
			env.detailCaches(seen, t.Dir)
		}
		for _, other := range seen.Others {
			if err == nil && !said {
				env.say("%s stays: it has the name of project %s, but does not belong to a workshop", other.Object, t.Name)
			}
		}
		if !said {
			were = seen
		}
		said = true
		return plan, EngineError(err)
	})
	if err != nil {
		return false, err
	}
	if err := EngineError(e.Tidy(ctx, t.Name, t.Dir)); err != nil {
		return false, err
	}
	if r, _ := env.Record(t.Name); r == nil || r.ModelOf == "" { // a room has none, though a workshop may have its name
		if err := env.downRooms(ctx, env.modelRooms(t)); err != nil {
			return false, err
		}
	}
	// Now that no worker can write any more.
	changed = env.CompareWatched(ctx, t.Name, were)
	env.forgetLearning(t.Name)
	return changed, env.forget(t, were, changed && !o.AcceptWatched)
}
