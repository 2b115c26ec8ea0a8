package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// upOptions are the flags of up.
type upOptions struct {
	dryRun, yes, strict, acceptWatched bool
	implicit                           bool // nobody asked for it: a call needs it
	learn                              learnOptions
}

func (a *program) upCommand() *cobra.Command {
	var o upOptions
	detach := false
	cmd := &cobra.Command{
		Use:   "up [WORKER…]",
		Short: "Start a workshop and wait until it is usable",
		Long: `up compiles the workshop, checks that the engine can keep every promise, plans
what is missing, carries the plan out and waits until each worker's gate has
passed. What runs already as it should is left alone. It then returns; the
workers go on until ` + "`down`" + `.

An ` + "`up`" + ` that fails or is interrupted takes back what it made: where nothing ran,
nothing is left; where workers ran, they go on, and a worker that was to come up
for the first time is removed, after the end of its log was shown. After one that
was killed, the next ` + "`up`" + ` or ` + "`down`" + ` repairs what it left.

What the watched files are (see down) is noted by the first ` + "`up`" + ` and kept until
` + "`down`" + `. A later one names what changed and starts all the same; with --strict it
refuses, and so does the one that a ` + "`call`" + ` or ` + "`tools`" + ` makes by itself.

--learn then lets workers with mode restricted reach names that no line allows,
and records them: ` + "`firewall suggest`" + ` makes lines of that. Until it ends, promises
B23, B24 and B25 don't hold; deny lines and what never opens do. It is refused
in continuous integration, and for workers with secrets unless --with-secrets.`,
		Example: `  workshop up
  workshop up --dry-run              # the plan and what was found on this machine
  workshop up --yes reviewer         # one worker; build images without asking
  workshop up --learn --for 10m      # find out what to allow`,
		Args:              usageArgs(0, -1),
		ValidArgsFunction: a.completeWorkers(0),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.learn.check(cmd); err != nil {
				return err
			}
			return a.up(ctx, cmd, args, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "build images without asking")
	f.BoolVar(&o.acceptWatched, "accept-watched", false, "take watched files as they are now: what changed since the first up is named once more")
	f.BoolVar(&o.strict, "strict", false, "exit with 4 if a watched file changed, or a mount can't be fully checked")
	o.learn.flags(cmd)
	f.Duration("wait-timeout", defaultWaitTimeout, "how long to wait until every worker is ready")
	f.Bool("secrets-on-disk", false, "keep secrets on disk until down, where there is no memory file system")
	f.Bool("without-limits", false, "go on where this machine enforces no limits of memory, cpu and processes (B5)")
	f.BoolVarP(&detach, "detach", "d", false, "accepted as in Compose, and what up always does")
	return cmd
}

func (a *program) up(ctx context.Context, cmd *cobra.Command, names []string, o upOptions) error {
	c, err := a.compile(ctx)
	if err != nil {
		return err
	}
	if err := c.workers(cmd, names); err != nil {
		return err
	}
	if o.learn.on {
		if err := a.refuseLearning(c, names, o.learn); err != nil {
			return err
		}
	}
	e, err := a.connect(ctx, a.approver(commandLine(cmd, "up"), o.yes))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := a.elsewhere(c); err != nil {
		return err
	}
	a.sayChosen()
	// First a look that changes nothing, so that a refusal leaves nothing.
	ready, err := a.prepare(ctx, e, c, false)
	if err != nil {
		return err
	}
	if o.strict && ready.notChecked {
		return app.Fail(app.CodeRefused, "a mount is not fully checked (B7, B8); nothing was started")
	}
	if l, ok := e.(learner); ok && o.learn.on {
		if err := l.CanLearn(); err != nil {
			return engineError(err)
		}
	}
	if o.dryRun {
		plan, err := a.plan(ctx, e, c, ready, names, o)
		if err != nil {
			return err
		}
		return a.printPlan(ready.w, ready.compiled.Facts, plan)
	}
	unlock, err := a.lock(ctx, c.project)
	if err != nil {
		return err
	}
	defer unlock()
	learning := ask(ctx, e, c.project, c.target().dir) // of the guard before, if there is one
	if err := a.start(ctx, e, c, ready.compiled.Facts.ToCreate, names, o); err != nil {
		return err
	}
	unlimited := false
	if a.set.withoutLimits { // where there are limits, they hold all the same
		info, err := e.Info(ctx)
		unlimited = err == nil && info.Unlimited
	}
	a.summary(c, names, unlimited)
	if o.learn.on {
		return a.learn(ctx, e, c, names, o.learn)
	}
	if s := <-learning; s != nil && len(s.Learning) > 0 {
		a.stillLearning(<-ask(ctx, e, c.project, c.target().dir))
	}
	return nil
}

// start makes what a run needs on this machine, plans, and carries it out.
func (a *program) start(ctx context.Context, e engine.Engine, c *compiled, created, names []string, o upOptions) (err error) {
	noted, _ := a.record(c.project)
	defer func() {
		if err != nil {
			a.forgetIfNothingIs(ctx, e, c, noted)
		}
	}()
	ready, err := a.prepare(ctx, e, c, true)
	if err != nil {
		return err
	}
	var first *engine.Plan
	err = a.converge(ctx, e, a.set.waitTimeout, func() (*engine.Plan, error) {
		plan, err := a.plan(ctx, e, c, ready, names, o)
		if err != nil || first != nil {
			return plan, err
		}
		first = plan
		a.sayFacts(ready.w, ready.compiled.Facts, created)
		return plan, a.watch(ctx, ready, o)
	})
	if err != nil && first != nil {
		return a.rollBack(ctx, e, first.Compiled, first.Observed, err)
	}
	return err
}

// forgetIfNothingIs removes secrets again where a start failed before there
// was a container that uses them, and the record, unless it was noted before.
func (a *program) forgetIfNothingIs(ctx context.Context, e engine.Engine, c *compiled, noted *facts.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	t := c.target()
	seen, err := e.Observe(ctx, c.project)
	ours := func(k engine.Container) bool { return k.Directory == t.dir }
	if err == nil && !slices.ContainsFunc(seen.Containers, ours) {
		forget := a.forget
		if noted != nil {
			forget = func(t target, seen engine.Observed) error { return a.forgetSecrets(t, noted, seen) }
		}
		if err := errors.Join(forget(t, engine.Observed{}), a.tidy(ctx, e, t)); err != nil {
			a.warn("%v", err)
		}
	}
}

// plan observes and plans. Images that are always pulled are pulled before,
// because only then it shows whether they changed; a dry run plans with what
// is there.
func (a *program) plan(ctx context.Context, e engine.Engine, c, ready *compiled, names []string, o upOptions) (*engine.Plan, error) {
	d := engine.Desired{Compiled: ready.compiled, Only: names}
	var err error
	if d.Builds, err = buildHashes(ctx, d.Compiled); err != nil {
		return nil, err
	}
	pull, err := engine.PlanPull(d)
	if err != nil {
		return nil, engineError(err)
	}
	if len(pull.Steps) > 0 && !o.dryRun {
		if err := a.apply(ctx, e, pull, 0); err != nil {
			return nil, err
		}
		d.Pulled = true
	}
	seen, err := e.Observe(ctx, c.project, engine.DesiredImages(d)...)
	if err != nil {
		return nil, engineError(err)
	}
	plan, err := engine.PlanUp(d, seen)
	if err != nil {
		return nil, engineError(err)
	}
	if o.dryRun {
		plan.Steps = append(slices.Clone(pull.Steps), plan.Steps...)
	}
	return plan, nil
}

// summary prints a line per worker: what it got.
func (a *program) summary(c *compiled, names []string, unlimited bool) {
	var closed []string
	for i := range c.w.Workers {
		w := &c.w.Workers[i]
		if len(names) > 0 && !slices.Contains(names, w.Name) {
			continue
		}
		if a.chosen.name == promise.Process {
			fmt.Fprintln(a.Out, w.Name+": "+mountsText(w.Container.Mounts)+"; its tools run on this machine, without limits")
			continue
		}
		fmt.Fprintln(a.Out, workerLine(w, unlimited))
		if !reaches(w) {
			closed = append(closed, w.Name)
		}
	}
	if len(closed) > 0 && !a.set.quiet {
		a.printFailure((&app.Failure{}).Hint("%s without network; to open names, write in %s: `network: {mode: restricted, allow: [HOST]}`",
			verb(closed), a.shown(c.dir+"/"+c.file)))
	}
}

// workerLine is what one worker got: mounts, network, ports, secrets, runtime,
// limits.
func workerLine(w *workshop.Worker, unlimited bool) string {
	c := &w.Container
	parts := []string{mountsText(c.Mounts), networkText(&c.Network) + portsText(c.Ports)}
	if len(c.Secrets) > 0 {
		parts = append(parts, secretsText(c.Secrets))
	}
	if c.Runtime.V != "" {
		parts = append(parts, "runtime "+c.Runtime.V)
	}
	limits := limitsText(&c.Resources)
	if unlimited {
		limits = "without limits (B5)"
	}
	return w.Name + ": " + strings.Join(append(parts, limits), "; ")
}
