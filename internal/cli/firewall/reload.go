package firewall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

func (a verbs) reloadCommand() *cobra.Command {
	reset := false
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Give the running guard the lines of workshop.yaml",
		Long: `reload gives the running guard the allow and deny lines of workshop.yaml.
Connections that they no longer allow end, others continue, and no worker is
restarted. Other changes of workers are reported and left to ` + "`up`" + `. If resolvers,
modes or rooms changed, reload changes nothing: run ` + "`up`" + `.

Live changes and learning continue; --reset ends both, and resets upload budgets. A
room that is closed because the live denies and spent budgets of a guard that crashed
can't be read is opened without them.`,
		Example: `  workshop firewall reload
  workshop firewall reload --reset   # the file alone, and no learning`,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.reload(ctx, reset)
		}),
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "drop every live change, end learning, and forget what upload budgets have spent")
	command.CredentialFlags(cmd)
	return cmd
}

func (a verbs) reload(ctx context.Context, reset bool) error {
	done, err := a.Reload(ctx, reset)
	if err == nil {
		a.sayReloaded(done)
	}
	return err
}

// reloadSaved reloads the guard after a save, if the workshop is up.
func (a verbs) reloadSaved(ctx context.Context, file string) error {
	a.Warned = true // before the save
	err := a.reload(ctx, false)
	f, ok := errors.AsType[*app.Failure](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, app.ErrNotUp):
		a.Say("the workshop is not up: takes effect on the next `workshop up`")
		return nil
	case errors.Is(err, app.ErrNeedsUp):
		return f.Hint("%s has the line", file)
	case ok && f.Code == app.CodeRefused:
		return f.Hint("%s has the line, which counts once that is done", file)
	case ok && f.Err != nil:
		return f.Hint("%s has the line; apply it: `workshop firewall reload`", file)
	}
	return err
}

// sayReloaded prints what is in force now.
func (a verbs) sayReloaded(done *app.Reloaded) {
	switch {
	case done.Replaced:
		fmt.Fprintf(a.Out, "reloaded: generation %d, %s\n", done.State.Generation, done.Detail)
	case done.Dropped > 0 || done.Stopped || done.Forgot || len(done.Opened) > 0:
		fmt.Fprintf(a.Out, "reset: generation %d, %s\n", done.State.Generation, done.Detail)
	default:
		fmt.Fprintf(a.Out, "nothing changed: the guard has these lines already (generation %d)\n", done.State.Generation)
	}
	if done.Dropped > 0 {
		a.Say("%s dropped", app.Count(done.Dropped, "live change"))
	}
	if len(done.Opened) > 0 {
		a.Say("%s: opened, without the live denies and spent upload budgets that couldn't be read", app.Printable(app.WorkersText(done.Opened)))
	}
	if done.Forgot {
		a.Say("upload budgets: what was spent is forgotten")
	}
	if done.Stopped {
		a.Say("learning ended: egress rules are enforced again (B23–B25)")
	}
	if n := len(done.Unsaved); n > 0 {
		list := done.Unsaved
		if n > maxUnsaved {
			list = append(slices.Clone(list[:maxUnsaved]), fmt.Sprintf("%d more", n-maxUnsaved))
		}
		a.Say("%s still active and not in workshop.yaml: %s (`workshop firewall show` lists, `workshop firewall reload --reset` drops)",
			isOrAre(n, "live change"), app.Printable(app.WorkersText(list)))
	}
	if len(done.State.Learning) > 0 {
		a.Say("%s", app.LearningText(done.State))
	}
	if len(done.Left) > 0 {
		a.Say("left for `workshop up`:\n  %s", strings.Join(done.Left, "\n  "))
	}
}

// maxUnsaved live changes are named.
const maxUnsaved = 5

// isOrAre is "1 live change is", "2 live changes are".
func isOrAre(n int, noun string) string {
	if n == 1 {
		return app.Count(n, noun) + " is"
	}
	return app.Count(n, noun) + " are"
}
