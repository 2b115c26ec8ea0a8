package firewall

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// changeOptions are the flags of firewall allow and deny.
type changeOptions struct {
	app.RuleChange
	save bool
}

func (a verbs) allowCommand() *cobra.Command {
	var o changeOptions
	cmd := a.changeCommand(&o, `Allow a name or address immediately`,
		`allow opens names, wildcards, addresses or ranges for all workers with a
network, or for the room of one, while they run. Without a port that is 80 and
443. Deny lines still win, and what never opens stays closed.

It lasts until the guard ends, by a crash or a restart too, or as long as --for says.
--save writes the line into workshop.yaml instead, comments and order kept, and reloads.`,
		`  workshop firewall allow api.example.org --for 30m
  workshop firewall allow github.com:22 '*.example.org' --worker builder
  workshop firewall allow db.internal:5432 --private
  workshop firewall allow 10.20.0.0/16:5432 '[2001:db8::]/48:443'
  workshop firewall allow api.example.org --save`)
	cmd.Flags().BoolVar(&o.Private, "private", false, "the name may have a private address")
	cmd.Flags().BoolVar(&o.ECH, "ech", false, "TLS with an encrypted server name may pass by its outer name")
	return cmd
}

func (a verbs) denyCommand() *cobra.Command {
	o := changeOptions{RuleChange: app.RuleChange{Deny: true}}
	return a.changeCommand(&o, `Deny a name or address immediately`,
		`deny closes names, wildcards, addresses or ranges for all workers, or for the
room of one, while they run: connections that go there end. Without a port that
is every port. A deny line wins over every allow line; one that isn't saved ends for
the host and ports of a later allow.

It lasts until `+"`down`"+`, or as long as --for says: a guard that crashes, `+"`restart`"+`
and `+"`up`"+` don't end it, and one of --worker follows that worker into another room.
--save writes the line into workshop.yaml instead, comments and order kept, and
reloads.`,
		`  workshop firewall deny gist.example.org
  workshop firewall deny '**.example.org:22' --for 1h
  workshop firewall deny 10.20.0.0/16 --save`)
}

func (a verbs) changeCommand(o *changeOptions, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   o.Verb() + " HOST[:PORT]...",
		Short: short, Long: long, Example: example,
		Args:              command.Args(1, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && o.For < time.Second {
				return command.UsageError(cmd, "--for %v: at least a second, such as 30m", o.For)
			}
			if o.save && o.For > 0 {
				return command.UsageError(cmd, "--save and --for exclude each other: a line of the file has no end")
			}
			if err := o.Parse(args); err != nil {
				return err
			}
			if o.save {
				return a.saveRules(ctx, o.RuleChange)
			}
			done, err := a.ChangeLive(ctx, o.RuleChange)
			if err == nil && len(done.Rules) > 0 {
				a.sayChanged(done, o.RuleChange)
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.DurationVar(&o.For, "for", 0, "how long it lasts, such as 30m (default: "+o.End()+")")
	f.StringVar(&o.Worker, "worker", "", "only for the room of this worker")
	f.BoolVar(&o.save, "save", false, "write the line into workshop.yaml, and reload")
	return cmd
}

// saveRules writes lines into the workshop file, and reloads the guard.
func (a verbs) saveRules(ctx context.Context, o app.RuleChange) error {
	done, err := a.SaveRules(ctx, o)
	switch {
	case err != nil:
		return err
	case done == nil: // the guard may not have it yet
		if v, err := a.ViewPolicy(ctx, ""); err == nil && v.State != nil && v.Changed() {
			return a.reloadSaved(ctx, v.File)
		}
		return nil
	}
	a.showRewritten(done)
	if len(done.NotFor) > 0 {
		a.Say("not for %s: these workers define their own allow list (add to it with --worker)", app.WorkersText(done.NotFor))
	}
	return a.reloadSaved(ctx, done.File)
}

// showRewritten prints the lines of the workshop file that changed.
func (a verbs) showRewritten(done *app.Rewritten) {
	fmt.Fprintln(a.Out, done.File)
	for _, line := range done.Lines {
		fmt.Fprintln(a.Out, app.Printable(line))
	}
}

// sayChanged says what was done, until when, and how to keep it or take it back.
func (a verbs) sayChanged(done *app.LiveChange, o app.RuleChange) {
	did, end := "allowed", o.End()
	if o.Deny {
		did = "denied"
	}
	if o.For > 0 {
		end = "until " + app.WhenText(done.Until) + " (" + durationtext.Of(o.For) + ")"
	}
	if done.Cut > 0 {
		end += ", " + app.Count(done.Cut, "connection") + " ended"
	}
	var args, lines []string // that the file doesn't have
	for i, r := range done.Rules {
		arg, until := app.RuleArg(r, o.Deny), end
		if in := done.InFile[i]; in != "" {
			until = "again: " + in
		} else {
			args, lines = append(args, arg), append(lines, app.RuleLine(r, o.Deny))
		}
		fmt.Fprintf(a.Out, "%s %s for %s %s\n", did, arg, app.WorkersText(done.Workers), until)
	}
	if a.Quiet {
		return
	}
	if o.Worker != "" && len(done.Workers) > 1 {
		a.Say("%s share a room, and with it what they may reach", app.WorkersText(done.Workers))
	}
	words := shellWords(args)
	f := &app.Failure{}
	if o.For == 0 && len(args) > 0 {
		flags := ""
		if done.Worker != "" {
			flags = " --worker " + done.Worker
		}
		if o.Private {
			flags += " --private"
		}
		if o.ECH {
			flags += " --ech"
		}
		if done.Unsavable != "" {
			f.Hint("--save doesn't keep it: %s", done.Unsavable)
		} else {
			f.Hint("to keep it: `workshop firewall %s %s%s --save`, or add to network.%s in workshop.yaml:\n- %s",
				o.Verb(), words, flags, o.Verb(), strings.Join(lines, "\n- "))
		}
	}
	if len(args) > 0 {
		f.Hint("to take it back: `workshop firewall reload --reset`, which drops every live change")
	}
	a.PrintFailure(f)
	if done.Stale != "" {
		a.Say("%s changed since the guard read it: apply it with `workshop firewall reload`", a.Shown(done.Stale))
	}
}

// shellWords makes arguments that can be pasted.
func shellWords(args []string) string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = shellquote.Quote(arg)
	}
	return strings.Join(out, " ")
}
