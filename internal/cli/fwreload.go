package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

func (a *program) firewallReloadCommand() *cobra.Command {
	reset := false
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Give the running guard the lines of workshop.yaml",
		Long: `reload gives the running guard the allow and deny lines of workshop.yaml.
Connections that they don't allow any more end, the others go on, and no worker
is touched. Where workers differ otherwise from what runs, reload says so, and
leaves that to ` + "`up`" + `. Other resolvers, modes or rooms need ` + "`up`" + ` first; then
reload changes nothing.

Live changes stay, and learning goes on; --reset ends both, and forgets what
upload budgets have spent. A room that is closed because the live denies and
spent budgets of a guard that crashed can't be read is opened without them.`,
		Example: `  workshop firewall reload
  workshop firewall reload --reset   # the file alone, and no learning`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.reload(ctx, cmd, reset)
		}),
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "drop every live change, end learning, and forget what upload budgets have spent")
	return cmd
}

func (a *program) reload(ctx context.Context, cmd *cobra.Command, reset bool) error {
	c, err := a.Compile(ctx)
	if err != nil {
		return err
	}
	a.Settings.WithoutLimits = true // nothing is started, so there is nothing to limit
	e, err := a.Connect(ctx, c.ProjectRef, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	ready, err := a.Prepare(ctx, e, c)
	if err != nil {
		return err
	}
	ch, err := a.Change(ctx, c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	plan, left, err := a.planReload(ctx, e, c, ready)
	if err != nil {
		return err
	}
	heard := &reloadEngine{Engine: e}
	if len(plan.Steps) > 0 {
		// As at `up`: a worker may have written the file that is about to count.
		a.CompareWatched(ctx, c.Name, engine.Observed{})
		if err := a.Apply(ctx, heard, plan, a.Settings.WaitTimeout); err != nil {
			return err
		}
	}
	return a.WithGuard(ctx, e, func(g *control.Client) error {
		before, err := app.GuardState(g)
		if err != nil {
			return err
		}
		after := before
		if len(app.ClosedRooms(before)) > 0 {
			var done control.Applied
			if err := g.Do(control.Request{Op: control.OpReopen}, &done); err != nil {
				return err
			}
			heard.ended(done.Cut)
			if after, err = app.GuardState(g); err != nil {
				return err
			}
		}
		if reset && (len(before.Live)+len(before.Learning) > 0 || spent(before)) {
			var done control.Applied
			if err := g.Do(control.Request{Op: control.OpChange, Reset: true}, &done); err != nil {
				return err
			}
			heard.ended(done.Cut)
			if after, err = app.GuardState(g); err != nil {
				return err
			}
			a.ForgetLearning(c.Name)
		}
		a.sayReloaded(cmd, before, after, len(plan.Steps) > 0, heard.detail)
		if len(left) > 0 {
			a.say("left for `workshop up`, which makes workers anew:\n  %s", strings.Join(left, "\n  "))
		}
		return nil
	})
}

// planReload plans what `up` would do, and takes of it what gives the guard a new
// policy. What it would do with workers is left: a worker that cloned a
// repository has a new .git to be held (B8), and its line can't wait for that.
// All else is refused, and so is a worker in another room than its own, which
// would get the lines of others (B40).
func (a *program) planReload(ctx context.Context, e engine.Engine, c, ready *app.Project) (plan *engine.Plan, left []string, err error) {
	// Whether an image is newer elsewhere is a question for `up`.
	d := engine.Desired{Compiled: ready.Compiled, Pulled: true}
	if d.Builds, err = app.BuildHashes(ctx, d.Compiled); err != nil {
		return nil, nil, err
	}
	seen, err := e.Observe(ctx, c.Name, engine.DesiredImages(d)...)
	if err != nil {
		return nil, nil, app.EngineError(err)
	}
	plan, err = engine.PlanUp(d, seen)
	switch {
	case err != nil:
		return nil, nil, app.EngineError(err)
	case len(seen.Containers) == 0:
		return nil, nil, app.NotUp(c.ProjectRef)
	case c.Compiled.Policy == nil:
		return nil, nil, app.Fail(app.CodeRefused, "no worker of project %s has a network", c.Name).Hint("%s", app.NetworkHint)
	}
	only, all := engine.OnlyReload(plan)
	if !only {
		d.NoWorkers = true
		if plan, err = engine.PlanUp(d, seen); err != nil {
			return nil, nil, app.EngineError(err)
		}
		left = all
	}
	if only, more := engine.OnlyReload(plan); !only {
		printables(more)
		return nil, nil, app.Fail(app.CodeFailed, "this needs `workshop up`, because more than the lines of allow and deny differs from what runs:\n%s", strings.Join(more, "\n")).
			Hint("nothing was changed; `workshop up` does all of it, `workshop up --dry-run` shows it")
	}
	printables(left)
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

func printables(texts []string) {
	for i := range texts {
		texts[i] = app.Printable(texts[i])
	}
}

// spent reports whether something of an upload budget is used.
func spent(s control.State) bool {
	return slices.ContainsFunc(s.Rooms, func(r control.RoomState) bool {
		return slices.ContainsFunc(r.Budgets, func(b control.BudgetState) bool { return b.Used > 0 })
	})
}

// sayReloaded prints what is in force now.
func (a *program) sayReloaded(cmd *cobra.Command, before, after control.State, reloaded bool, detail string) {
	dropped := len(before.Live) - len(after.Live)
	stopped := len(before.Learning) > 0 && len(after.Learning) == 0
	forgot := spent(before) && !spent(after)
	opened := len(app.ClosedRooms(before)) - len(app.ClosedRooms(after))
	switch {
	case reloaded:
		fmt.Fprintf(a.Out, "reloaded: generation %d, %s\n", after.Generation, detail)
	case dropped > 0 || stopped || forgot || opened > 0:
		fmt.Fprintf(a.Out, "reset: generation %d, %s\n", after.Generation, detail)
	default:
		fmt.Fprintf(a.Out, "nothing changed: the guard has these lines already (generation %d)\n", after.Generation)
	}
	if dropped > 0 {
		a.say("%s dropped", app.Count(dropped, "live change"))
	}
	if opened > 0 {
		a.say("%s: opened, without the live denies and spent upload budgets that couldn't be read", app.Printable(app.WorkersText(slices.Sorted(maps.Keys(app.ClosedRooms(before))))))
	}
	if forgot {
		a.say("upload budgets: what was spent is forgotten")
	}
	if stopped {
		a.say("learning ended: B23, B24 and B25 hold again")
	}
	if n := len(after.Live); n > 0 {
		a.say("%s on top of it: `%s` lists, `%s` drops", isOrAre(n, "live change"),
			commandLine(cmd, "show"), commandLine(cmd, "reload --reset"))
	}
	if len(after.Learning) > 0 {
		a.say("%s", app.LearningText(after))
	}
}

// isOrAre is "1 live change is", "2 live changes are".
func isOrAre(n int, noun string) string {
	if n == 1 {
		return app.Count(n, noun) + " is"
	}
	return app.Count(n, noun) + " are"
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
			r.detail = app.Printable(ev.Detail)
		}
		events(ev)
	})
}

// ended adds connections that a reset ended.
func (r *reloadEngine) ended(n int) {
	switch {
	case n > 0:
		r.detail = strings.TrimPrefix(r.detail+", ", ", ") + app.Count(n, "connection") + " ended by the reset"
	case r.detail == "":
		r.detail = "no connection ended"
	}
}
