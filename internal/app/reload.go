package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// Reloaded is what a reload did.
type Reloaded struct {
	// State is the guard's now.
	State control.State
	// Replaced: the guard was given a new policy.
	Replaced bool
	Detail   string   // which connections ended
	Dropped  int      // live changes
	Opened   []string // workers of rooms that were closed, sorted
	// Unsaved are the live changes that the file doesn't have, as "allow HOST:PORT".
	Unsaved []string
	// Forgot: nothing of an upload budget is used any more. Stopped: learning ended.
	Forgot, Stopped bool
	// Left is what only `up` does, one line each.
	Left []string
}

// ErrNeedsUp is wrapped where a reload can't apply what the file has.
var ErrNeedsUp = errors.New("this needs `workshop up`")

// Reload loads into the running guard the rules of the workshop file. reset drops every
// live change, ends learning and forgets what upload budgets have spent, also where the
// file can't be loaded.
func (env *Env) Reload(ctx context.Context, reset bool) (*Reloaded, error) {
	done, err := env.reload(ctx, reset)
	if f, ok := errors.AsType[*Failure](err); ok && reset && !errors.Is(err, ErrNotUp) {
		if n := env.dropLive(ctx); n > 0 {
			f.Hint("%s dropped all the same", Count(n, "live change"))
		}
	}
	return done, err
}

// dropLive resets the guard, whatever the file says, and returns how many live changes
// it had.
func (env *Env) dropLive(ctx context.Context) (n int) {
	t, err := env.Find(ctx)
	if err != nil {
		return 0
	}
	e, err := env.Connect(ctx, t, nil)
	if err != nil {
		return 0
	}
	defer e.Close()
	_ = env.withGuard(ctx, e, func(g *control.Client) error {
		before, err := guardState(g)
		if err == nil && resettable(before) && len(closedRooms(before)) == 0 { // those are opened by a whole reload alone
			if err = g.Do(control.Request{Op: control.OpChange, Reset: true}, &control.Applied{}); err == nil {
				n = len(before.Live)
				env.forgetLearning(t.Name)
			}
		}
		return err
	})
	return n
}

// resettable reports whether the guard has something that a reset takes away.
func resettable(s control.State) bool { return len(s.Live)+len(s.Learning) > 0 || spent(s) }

func (env *Env) reload(ctx context.Context, reset bool) (*Reloaded, error) {
	env.Warnings = WarnNew // its lines are about to count
	c, err := env.Compile(ctx)
	if err != nil {
		return nil, env.hintRecorded(err)
	}
	env.Settings.WithoutLimits = true // nothing is started, so there is nothing to limit
	e, err := env.Connect(ctx, c.ProjectRef, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	// What isn't up needs nothing of this machine, as the values of secrets.
	seen, err := e.Look(ctx, false)
	switch {
	case err != nil:
		return nil, err
	case len(seen.Containers) == 0:
		return nil, notUp(c.ProjectRef)
	}
	ready, err := env.Prepare(ctx, e, c.startedLike(ctx, e))
	if err != nil {
		return nil, err
	}
	ch, err := env.Change(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer ch.Unlock()
	plan, left, err := planReload(ctx, e, c, ready, env.GrantChanges(ready))
	if err != nil {
		return nil, err
	}
	var needs *creds
	heard := &reloadEngine{Engine: e}
	if len(plan.Steps) > 0 {
		// As at `up`: a worker may have written the file that is about to count.
		if err := env.ReviewDefinition(ctx, ready, nil); err != nil {
			return nil, err
		}
		env.CompareWatched(ctx, c.Name, engine.Observed{})
		if needs, err = env.agreeCredentials(ctx, e, ready, false); err != nil {
			return nil, err
		}
		if err := env.Apply(ctx, heard, plan, env.Settings.WaitTimeout); err != nil {
			return nil, err
		}
		env.keepLines(ready)
	}
	var done *Reloaded
	err = env.withGuard(ctx, e, func(g *control.Client) error {
		before, err := guardState(g)
		if err != nil {
			return err
		}
		after := before
		change := func(req control.Request) error {
			var applied control.Applied
			err := g.Do(req, &applied)
			if err == nil {
				heard.ended(applied.Cut)
				after, err = guardState(g)
			}
			return err
		}
		if len(closedRooms(before)) > 0 {
			if err := change(control.Request{Op: control.OpReopen}); err != nil {
				return err
			}
		}
		if reset && resettable(before) {
			if err := change(control.Request{Op: control.OpChange, Reset: true}); err != nil {
				return err
			}
			env.forgetLearning(c.Name)
		}
		done = &Reloaded{
			State: after, Replaced: len(plan.Steps) > 0, Detail: heard.detail, Left: left, Dropped: len(before.Live) - len(after.Live),
			Unsaved: unsaved(after.Live, c.Compiled.Policy.Rooms),
			Forgot:  spent(before) && !spent(after), Stopped: len(before.Learning) > 0 && len(after.Learning) == 0,
		}
		if closed := closedRooms(before); len(closed) > len(closedRooms(after)) {
			done.Opened = slices.Sorted(maps.Keys(closed))
		}
		return nil
	})
	if err == nil && needs != nil {
		err = env.lease(ctx, e, ready, needs)
	}
	return done, err
}

// planReload plans what `up` would do, and takes of it what gives the guard a new
// policy. What it would do with workers is left: a worker that cloned a
// repository has a new .git to be held (B8), and its line can't wait for that.
// All else is refused, and so is a worker in another room than its own, which
// would get the lines of others (B40).
func planReload(ctx context.Context, e *Running, c, ready *Project, changed GrantChanges) (plan *engine.Plan, left []string, err error) {
	// Whether an image is newer elsewhere is a question for `up`.
	d := engine.Desired{Compiled: ready.Compiled, Pulled: true}
	if d.Builds, err = e.env.buildHashes(ctx, ready); err != nil {
		return nil, nil, err
	}
	seen, err := e.Observe(ctx, c.Name, engine.DesiredImages(d)...)
	if err != nil {
		return nil, nil, EngineError(err)
	}
	plan, err = engine.PlanUp(d, seen)
	switch {
	case err != nil:
		return nil, nil, EngineError(err)
	case len(seen.Containers) == 0:
		return nil, nil, notUp(c.ProjectRef)
	case c.Compiled.Policy == nil:
		return nil, nil, Fail(CodeRefused, "no worker of project %s has a network", c.Name).Hint("%s", networkHint)
	}
	only, all := engine.OnlyReload(plan)
	if !only {
		d.NoWorkers = true
		if plan, err = engine.PlanUp(d, seen); err != nil {
			return nil, nil, EngineError(err)
		}
		left = changed.left(all)
	}
	if only, all := engine.OnlyReload(plan); !only {
		return nil, nil, Fail(CodeFailed, "%w, because more than the lines of allow and deny differs from what runs:\n%s", ErrNeedsUp, strings.Join(changed.left(all), "\n")).
			Hint("what runs wasn't changed; `workshop up` does all of it, `workshop up --dry-run` shows it")
	}
	reload := *plan
	reload.Steps = nil
	for _, s := range plan.Steps {
		if s.Op == engine.OpReloadPolicy {
			s.After = nil
			reload.Steps = append(reload.Steps, s)
		}
	}
	return &reload, left, nil
}

// unsaved are the live changes that the lines of the file don't have.
func unsaved(live []firewall.Live, rooms []firewall.RoomPolicy) (out []string) {
	for _, l := range live {
		if slices.ContainsFunc(rooms, func(r firewall.RoomPolicy) bool {
			lines := r.Allow
			if l.Deny {
				lines = r.Deny
			}
			return (l.Room == "" || l.Room == r.Room) && !firewall.CoveredBy(l.Rule, filled(lines))
		}) {
			out = appendNew(out, RuleChange{Deny: l.Deny}.Verb()+" "+RuleArg(l.Rule, l.Deny))
		}
	}
	return out
}

// spent reports whether something of an upload budget is used.
func spent(s control.State) bool {
	return slices.ContainsFunc(s.Rooms, func(r control.RoomState) bool {
		return slices.ContainsFunc(r.Budgets, func(b control.BudgetState) bool { return b.Used > 0 })
	})
}

// reloadEngine listens to what a reload did: how many connections ended.
type reloadEngine struct {
	engine.Engine
	detail string
}

// Apply implements [engine.Engine].
func (r *reloadEngine) Apply(ctx context.Context, p *engine.Plan, events func(engine.Event)) error {
	return r.Engine.Apply(ctx, p, func(ev engine.Event) {
		if ev.Step.Op == engine.OpReloadPolicy && ev.Status == engine.StepProgress {
			r.detail = Printable(ev.Detail)
			return // the result has it
		}
		events(ev)
	})
}

// ended adds connections that a reset ended.
func (r *reloadEngine) ended(n int) {
	switch {
	case n > 0:
		r.detail = strings.TrimPrefix(r.detail+", ", ", ") + Count(n, "connection") + " ended by the reset"
	case r.detail == "":
		r.detail = engine.NoneEnded
	}
}
