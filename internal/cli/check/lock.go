package check

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Lock is the verb lock.
func Lock(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.LockOptions
	check := false
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Write workshop.lock: what was reviewed",
		Long: `lock writes workshop.lock next to the workshop file: the content of every file that
is compiled, the digest of every image, and in words all that each worker is granted.
Commit it: a diff of it is a review of what changes, and ` + "`up --frozen`" + ` runs nothing
else (B46). It depends on files of the repository and on registries alone, and is the
same on every machine.

Images and sources that are locked stay as they are; --upgrade looks them up again. A
source that is new is shown, with who signed it, and needs a yes; without a terminal
--yes agrees to those that the settings allow (sources.allow). Who signed a source may
not change in silence. An image that
is on the engine and in no registry isn't pinned, and the lock says so. In a lock
with conflicts of a merge stays what both sides have; all else is looked up.

--check compares, without a network or an engine, and exits with 3 where the lock is
out of date.`,
		Example: `  workshop lock
  workshop lock --check              # in continuous integration
  workshop lock --upgrade            # newer images of the same tags`,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if check && (o.Upgrade || o.Offline || o.Yes) {
				return command.UsageError(cmd, "--check writes nothing and asks nobody: --upgrade, --offline and --yes have no meaning with it")
			}
			if check {
				return a.checkLock(ctx)
			}
			o.Ask = a.Asker()
			return a.writeLock(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; fail if the lock is out of date")
	cmd.Flags().BoolVar(&o.Upgrade, "upgrade", false, "look up images and sources again that are locked")
	cmd.Flags().BoolVar(&o.Offline, "offline", false, "ask no registry, and no source")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "agree to sources that the settings allow (sources.allow)")
	return cmd
}

func (a verbs) checkLock(ctx context.Context) error {
	r, err := a.CheckedLock(ctx)
	if err != nil {
		return err
	}
	if len(r.Differences) == 0 {
		a.Say("%s is up to date", r.File)
		return nil
	}
	a.printDifferences(r)
	return app.Fail(app.CodeInvalid, "%s is out of date: %s", r.File, app.Count(len(r.Differences), "difference")).Hint("review them, and run `workshop lock`")
}

func (a verbs) writeLock(ctx context.Context, o app.LockOptions) error {
	r, err := a.Lock(ctx, o)
	if err != nil {
		return err
	}
	if !r.Changed {
		a.Say("%s is up to date", r.File)
		return nil
	}
	if !r.New {
		a.printDifferences(r)
	}
	a.Say("wrote %s", r.File)
	return nil
}

func (a verbs) printDifferences(r app.LockResult) {
	for _, d := range r.Differences {
		fmt.Fprintln(a.Out, app.Printable(d.String()))
	}
}
