package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/shellword"
)

// changeOptions are the flags of firewall allow and deny.
type changeOptions struct {
	deny         bool
	lasts        time.Duration
	worker       string
	private, ech bool
	save         bool
	comment      string // behind a line that is written
}

// end is when a change ends that has no time.
func (o changeOptions) end() string {
	if o.deny {
		return "until the workshop stops"
	}
	return "until the guard ends"
}

// verb is the command's name.
func (o changeOptions) verb() string {
	if o.deny {
		return "deny"
	}
	return "allow"
}

func (a *program) firewallAllowCommand() *cobra.Command {
	var o changeOptions
	cmd := a.changeCommand(&o, `Let workers reach a name or address, at once`,
		`allow opens names, wildcards, addresses or ranges for all workers with a
network, or for the room of one, while they run. Without a port that is 80 and
443. Deny lines still win, and what never opens stays closed.

It lasts until the guard ends, by a crash too, or as long as --for says. --save
writes the line into workshop.yaml instead, comments and order kept, and reloads.`,
		`  workshop firewall allow api.example.org --for 30m
  workshop firewall allow github.com:22 '*.example.org' --worker builder
  workshop firewall allow db.internal:5432 --private
  workshop firewall allow 10.20.0.0/16:5432 '[2001:db8::]/48:443'
  workshop firewall allow api.example.org --save`)
	cmd.Flags().BoolVar(&o.private, "private", false, "the name may have a private address")
	cmd.Flags().BoolVar(&o.ech, "ech", false, "TLS with an encrypted server name may pass by its outer name")
	return cmd
}

func (a *program) firewallDenyCommand() *cobra.Command {
	o := changeOptions{deny: true}
	return a.changeCommand(&o, `Close a name or address, at once`,
		`deny closes names, wildcards, addresses or ranges for all workers, or for the
room of one, while they run: connections that go there end. Without a port that
is every port. A deny line wins over every allow line.

It lasts until the workshop stops, or as long as --for says; a guard that crashes
still has it when it comes back. --save writes the line into workshop.yaml
instead, comments and order kept, and reloads.`,
		`  workshop firewall deny gist.example.org
  workshop firewall deny '**.example.org:22' --for 1h
  workshop firewall deny 10.20.0.0/16 --save`)
}

func (a *program) changeCommand(o *changeOptions, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   o.verb() + " HOST[:PORT]…",
		Short: short, Long: long, Example: example,
		Args:              usageArgs(1, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && o.lasts < time.Second {
				return usageError(cmd, "--for %v: at least a second, such as 30m", o.lasts)
			}
			if o.save && o.lasts > 0 {
				return usageError(cmd, "--save and --for exclude each other: a line of the file has no end")
			}
			rules, err := parseRules(args, *o)
			if err != nil {
				return err
			}
			if o.save {
				return a.saveRules(ctx, cmd, rules, *o)
			}
			return a.changeLive(ctx, rules, *o)
		}),
	}
	f := cmd.Flags()
	f.DurationVar(&o.lasts, "for", 0, "how long it lasts, such as 30m (default: "+o.end()+")")
	f.StringVar(&o.worker, "worker", "", "only for the room of this worker")
	f.BoolVar(&o.save, "save", false, "write the line into workshop.yaml, and reload")
	// The flag is there.
	_ = cmd.RegisterFlagCompletionFunc("worker", a.completeWorkers(0))
	return cmd
}

// parseRules reads all of the arguments; all problems at once.
func parseRules(args []string, o changeOptions) ([]firewall.Rule, error) {
	var rules []firewall.Rule
	var texts []string
	problems := &app.Failure{}
	for _, arg := range args {
		r, f := parseRule(arg, o.deny)
		if f == nil && r.CIDR.IsValid() && (o.private || o.ech) {
			f = app.Fail(app.CodeUsage, "%s: --private and --ech are for names; a range names its addresses itself", quoted(arg))
		}
		if f != nil {
			problems.Code = max(problems.Code, f.Code)
			texts = append(texts, f.Error())
			problems.Hints = append(problems.Hints, f.Hints...)
			continue
		}
		r.Private, r.ECH = o.private, o.ech
		if !slices.ContainsFunc(rules, func(x firewall.Rule) bool { return ruleArg(x, o.deny) == ruleArg(r, o.deny) }) {
			rules = append(rules, r)
		}
	}
	if len(texts) > 0 {
		problems.Err = errors.New(strings.Join(texts, "\n"))
		return nil, problems
	}
	return rules, nil
}

// changeLive changes what the running guard goes by.
func (a *program) changeLive(ctx context.Context, rules []firewall.Rule, o changeOptions) error {
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, err := a.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	return a.WithGuard(ctx, e, func(c *control.Client) error {
		state, err := app.GuardState(c)
		if err != nil {
			return err
		}
		rooms := a.roomsOf(ctx, t, state, o.worker)
		if len(rooms) == 0 {
			return a.noRoom(ctx, e, o.worker)
		}
		var until time.Time
		if o.lasts > 0 {
			until = time.Now().Add(o.lasts)
		}
		rules, err := a.stillNeeded(rooms, rules, o, until)
		if err != nil || len(rules) == 0 {
			return err
		}
		req := control.Request{Op: control.OpChange, For: control.Duration(o.lasts)}
		for _, r := range rules {
			l := firewall.Live{Deny: o.deny, Rule: r}
			if o.worker != "" {
				l.Room = rooms[0].Room
			}
			req.Changes = append(req.Changes, l)
		}
		var done control.Applied
		if err := c.Do(req, &done); err != nil {
			return err
		}
		a.sayChanged(rooms, rules, o, until, done)
		if !rooms[0].known && t.File != "" {
			a.say("%s isn't what the guard has any more: `workshop firewall reload` gives it to the guard", a.Shown(t.File))
		}
		return nil
	})
}

// noRoom says why a worker has no lines to change.
func (a *program) noRoom(ctx context.Context, e *app.Running, worker string) error {
	seen, err := e.Observe(ctx, e.Name)
	if err != nil {
		return app.EngineError(err)
	}
	if err := app.Services(e.ProjectRef, seen, []string{worker}); err != nil {
		return err
	}
	return noNetwork(worker)
}

func noNetwork(worker string) *app.Failure {
	return app.Fail(app.CodeRefused, "%s has no network (mode none)", worker).Hint("%s", app.NetworkHint)
}

// stillNeeded leaves out what is so already, and refuses what would have no
// effect.
func (a *program) stillNeeded(rooms []roomLines, rules []firewall.Rule, o changeOptions, until time.Time) ([]firewall.Rule, error) {
	var left []firewall.Rule
	var problems []string
	for _, rule := range rules {
		lines := map[standing][]string{} // what the rooms say, with the line
		for i := range rooms {
			how, line := rooms[i].standing(rule, o.deny, o.worker == "", until)
			if !slices.Contains(lines[how], line) {
				lines[how] = append(lines[how], line)
			}
		}
		what, no := ruleArg(rule, o.deny), strings.Join(lines[denied], "; ")
		switch {
		case no != "":
			problems = append(problems, fmt.Sprintf("%s is denied, and deny always wins: %s", what, no))
		case lines[needed] != nil:
			left = append(left, rule)
		case lines[already] == nil:
			a.say("%s: every public name and address is allowed already (network: open); nothing changed", what)
		case o.deny:
			a.say("%s is denied already: %s; nothing changed", what, strings.Join(lines[already], "; "))
		default:
			a.say("%s is allowed already: %s; nothing changed", what, strings.Join(lines[already], "; "))
		}
	}
	if len(problems) > 0 {
		f := app.Fail(app.CodeRefused, "%s", strings.Join(problems, "\n"))
		if strings.Contains(f.Error(), "`workshop firewall deny") {
			return nil, f.Hint("`workshop firewall reload --reset` takes all live changes back; nothing changed")
		}
		return nil, f.Hint("take that line out of the file and run `workshop firewall reload`; nothing changed")
	}
	return left, nil
}

// sayChanged says what was done, until when, and how to keep it or take it back.
func (a *program) sayChanged(rooms []roomLines, rules []firewall.Rule, o changeOptions, until time.Time, done control.Applied) {
	var workers []string
	for _, r := range rooms {
		workers = append(workers, r.Workers...)
	}
	slices.Sort(workers)
	did, end := "allowed", o.end()
	if o.deny {
		did = "denied"
	}
	if o.lasts > 0 {
		end = "until " + app.WhenText(until) + " (" + lengthText(o.lasts) + ")"
	}
	if done.Cut > 0 {
		end += ", " + app.Count(done.Cut, "connection") + " ended"
	}
	args, lines := make([]string, len(rules)), make([]string, len(rules))
	for i, r := range rules {
		args[i], lines[i] = ruleArg(r, o.deny), ruleLine(r, o.deny)
		fmt.Fprintf(a.Out, "%s %s for %s %s\n", did, args[i], app.WorkersText(workers), end)
	}
	if a.Quiet {
		return
	}
	if o.worker != "" && len(workers) > 1 {
		a.say("%s share a room, and with it what they may reach", app.WorkersText(workers))
	}
	words := shellWords(args)
	where := ""
	if o.worker != "" {
		where = " --worker " + o.worker
	}
	f := &app.Failure{}
	if o.lasts == 0 {
		flags := where
		if o.private {
			flags += " --private"
		}
		if o.ech {
			flags += " --ech"
		}
		f.Hint("to keep it: `workshop firewall %s %s%s --save`, or add to network.%s in workshop.yaml:\n- %s",
			o.verb(), words, flags, o.verb(), strings.Join(lines, "\n- "))
	}
	if o.deny {
		f.Hint("to take it back: `workshop firewall reload --reset`, which drops every live change")
	} else {
		f.Hint("to take it back: `workshop firewall deny %s%s`", words, where)
	}
	a.printFailure(f)
}

// shellWords makes arguments that can be pasted.
func shellWords(args []string) string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = shellword.Quote(arg)
	}
	return strings.Join(out, " ")
}
