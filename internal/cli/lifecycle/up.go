package lifecycle

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// upOptions are the flags of up.
type upOptions struct {
	dryRun, yes, strict bool
	offline, emulate    bool
	acceptWatched       string
	learn               learnOptions
}

// Up is the verb up.
func Up(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o upOptions
	detach := false
	cmd := &cobra.Command{
		Use:   "up [WORKER...]",
		Short: "Start a workshop and wait until it is usable",
		Long: `up compiles the workshop, checks that the engine can keep every promise, plans
what is missing, carries the plan out and waits until each worker is
ready. What runs already as it should is left alone. It then returns, with a line
per worker: what changed, and all that it has where no ` + "`up`" + ` has said that; with -v
always, and each step. The workers go on until ` + "`down`" + `.

An ` + "`up`" + ` that fails or is interrupted takes back what it made: where nothing ran,
nothing is left; where workers ran, they keep running, and a worker that was new is
removed after the end of its log was shown. After an ` + "`up`" + ` that was killed, the
next ` + "`up`" + ` or ` + "`down`" + ` repairs what it left.

What the watched files are (see down) is noted by the first ` + "`up`" + ` and kept until
` + "`down`" + `. A later one names what changed and starts; with --strict it refuses, as
does the one that ` + "`call`" + ` or ` + "`tools`" + ` runs. Lines of workshop.yaml or a worker file
that a worker may have written are shown, with the reason, and need a yes or
--accept-watched. A dry run shows them too.

With a workshop.lock (see lock) images run as it has them, by digest; what else differs
from it is named. --frozen refuses any difference (B46), and is the default in
continuous integration. Files of other repositories are fetched at the locked commit,
once a person, or the settings, agreed to it; --offline fetches none.

--learn then lets workers with mode restricted reach names that no line allows,
and records them: ` + "`firewall suggest`" + ` prints lines for them. Until it ends, the
allow list is not enforced (B23 to B25); deny lines and what never opens are. It is
refused in continuous integration, and for workers with secrets unless --with-secrets.`,
		Example: `  workshop up
  workshop up --dry-run              # the plan and what was found on this machine
  workshop up --yes reviewer         # one worker; build images without asking
  workshop up --frozen               # only what workshop.lock says
  workshop up --learn --for 10m      # find out what to allow`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: a.CompleteWorkers(0),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.learn.check(cmd); err != nil {
				return err
			}
			return a.up(ctx, cmd, args, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "build images without asking")
	f.BoolVar(&o.offline, "offline", false, "fetch no source: only the vendor directory and the cache have them")
	f.StringVar(&o.acceptWatched, "accept-watched", "", "take watched files and the workshop's own as they are now; with the `DIGEST` that a refused up printed, only what it showed of the workshop's own: what changed since the first up is named once more")
	f.Lookup("accept-watched").NoOptDefVal = app.AcceptAll
	f.BoolVar(&o.strict, "strict", false, "exit with 4 if a watched file changed, or a mount can't be fully checked")
	o.learn.flags(cmd)
	f.Duration("wait-timeout", app.DefaultWaitTimeout, "how long to wait until every worker is ready")
	f.Bool("secrets-on-disk", false, "keep secrets on disk until down, where there is no memory file system")
	command.FrozenFlag(cmd)
	command.CredentialFlags(cmd)
	f.BoolVar(&o.emulate, "emulate", false, "run virtual machines without KVM for tests: that is not a boundary (B13)")
	f.Bool("without-limits", false, "go on where this machine enforces no limits of memory, cpu and processes (B5)")
	f.BoolVarP(&detach, "detach", "d", false, "accepted as in Compose, and what up always does")
	return cmd
}

func (a verbs) up(ctx context.Context, cmd *cobra.Command, names []string, o upOptions) error {
	a.Warnings = app.WarnNew
	a.Offline, a.Emulate = o.offline, o.emulate
	compile := a.CompileToRun
	if o.dryRun {
		compile = a.Compile
	}
	c, err := compile(ctx)
	if err != nil {
		return err
	}
	if err := c.CheckWorkers(names); err != nil {
		return err
	}
	if err := a.RefuseEmulation(c.Source); err != nil {
		return err
	}
	if o.learn.on {
		if err := a.RefuseLearning(c, names, o.learn.withSecrets); err != nil {
			return err
		}
	}
	e, err := a.Connect(ctx, c.ProjectRef, a.Approver("workshop up", o.yes))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := a.Elsewhere(ctx, e); err != nil {
		return err
	}
	a.SayChosen(e.Chosen)
	// First a look that changes nothing, so that a refusal leaves nothing.
	ready, err := a.Prepare(ctx, e, c)
	if err != nil {
		return err
	}
	if o.strict && ready.NotChecked {
		return app.Fail(app.CodeRefused, "a mount is not fully checked (B7, B8); nothing was started")
	}
	if o.learn.on {
		if err := e.CanLearn(); err != nil {
			return app.EngineError(err)
		}
	}
	if o.dryRun {
		o := app.UpOptions{DryRun: true, Strict: o.strict, AcceptWatched: o.acceptWatched}
		plan, err := a.Plan(ctx, e, ready, names, o)
		if err != nil {
			return err
		}
		if err := a.printPlan(ready, plan); err != nil {
			return err
		}
		a.SayEnding(ctx, e, plan)
		if err := a.SayCredentials(ctx, e, ready); err != nil {
			return err
		}
		return a.Watch(ctx, ready, e.Capabilities().Contained, o)
	}
	ch, err := a.Change(ctx, c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	a.KeepChanges = true
	a.Changes.Granted = a.GrantChanges(ready)
	before := e.AskGuard(ctx) // of the guard before, if there is one
	if err := ch.Up(ctx, e, c, ready, names, app.UpOptions{Strict: o.strict, AcceptWatched: o.acceptWatched, Ask: a.Asker()}); err != nil {
		return err
	}
	unlimited := false
	if a.Settings.WithoutLimits { // where there are limits, they are enforced
		info, err := e.Info(ctx)
		unlimited = err == nil && info.Unlimited
	}
	a.summary(c, e.Capabilities(), names, unlimited)
	if o.learn.on {
		return a.Learn(ctx, e, c, names, o.learn.lasts)
	}
	if s := <-before; s != nil && len(s.Learning)+len(s.Live) > 0 {
		a.GoesOn(<-e.AskGuard(ctx))
	}
	return nil
}
