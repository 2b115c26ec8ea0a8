package app

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/durationtext"
)

// RuleChange is a change of what workers may reach: in the running guard, or in the
// workshop file.
type RuleChange struct {
	Rules []firewall.Rule
	Deny  bool // they are denied; else allowed
	// For is how long the change lasts in the running guard; 0: until the guard ends,
	// or of a deny, until the workshop stops.
	For    time.Duration
	Worker string // the rules are for its room; empty: for all
	// Private: the names may have private addresses. ECH: TLS with an encrypted server
	// name may pass by its outer name.
	Private, ECH bool

	comment string // of the lines that are written
	// forOthers: a line that a worker's own list needs in the workshop's, too, may reach
	// others by that, which is said; else it is refused.
	forOthers bool
	// text is the one line for all rules, as "preset: npm"; empty: each
	// has its own.
	text string
}

// End says until when a change lasts that has no time.
func (o RuleChange) End() string {
	if o.Deny {
		return "until the workshop stops"
	}
	return "until the guard ends"
}

// Verb is the name of the command that makes the change.
func (o RuleChange) Verb() string {
	if o.Deny {
		return "deny"
	}
	return "allow"
}

// LiveChange is what was changed in the running guard.
type LiveChange struct {
	// Rules are those that changed something; none: it was all so already.
	Rules []firewall.Rule
	// InFile has for each the line of the file that allows it, where the change ended a
	// deny; empty: none does for all rooms.
	InFile  []string
	Workers []string  // of the rooms, sorted
	Worker  string    // that --save takes: see [roomFlag]
	Until   time.Time // zero: it has no end of its own
	Cut     int       // connections that ended
	// Unsavable says why --save would refuse what the file doesn't have, and where that
	// belongs instead; empty: it writes it, or the file isn't the guard's.
	Unsavable string
	// Stale is the path of the workshop file, where the guard has another policy.
	Stale string
}

// ChangeLive changes the rules of the running guard.
func (env *Env) ChangeLive(ctx context.Context, o RuleChange) (*LiveChange, error) {
	if !o.Deny {
		if err := env.rulesWithinBoundaries(ctx, o.Rules); err != nil {
			return nil, err
		}
	}
	t, err := env.Find(ctx)
	if err != nil {
		return nil, err
	}
	e, err := env.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	done := &LiveChange{}
	return done, env.withGuard(ctx, e, func(c *control.Client) error {
		state, err := guardState(c)
		if err != nil {
			return err
		}
		rooms := env.roomsOf(ctx, t, state, o.Worker)
		if len(rooms) == 0 {
			return env.noRoom(ctx, e, o)
		}
		if o.For > 0 {
			done.Until = time.Now().Add(o.For)
		}
		rules, err := env.stillNeeded(rooms, o, done.Until)
		if err != nil || len(rules) == 0 {
			return err
		}
		req := control.Request{Op: control.OpChange, For: control.Duration(o.For)}
		for _, r := range rules {
			l := firewall.Live{Deny: o.Deny, Rule: r}
			if o.Worker != "" {
				l.Room = rooms[0].Room
			}
			req.Changes = append(req.Changes, l)
		}
		var applied control.Applied
		if err := c.Do(req, &applied); err != nil {
			return err
		}
		done.Rules, done.Cut, done.Worker = rules, applied.Cut, roomFlag(rooms[0].Room, rooms[0].Workers, o.Worker)
		if !o.Deny {
			env.sayStillClosed(c, rooms[0].Room, rules)
		}
		done.InFile = make([]string, len(rules))
		for i := range rules {
			if !o.Deny {
				done.InFile[i] = inFile(rooms, rules[i])
			}
		}
		for _, r := range rooms {
			done.Workers = append(done.Workers, r.Workers...)
		}
		slices.Sort(done.Workers)
		if !rooms[0].known {
			done.Stale = t.File
			return nil
		}
		save := o
		save.Worker, save.Rules = done.Worker, nil
		for i, in := range done.InFile {
			if in == "" {
				save.Rules = append(save.Rules, rules[i])
			}
		}
		if s, _ := env.saved(ctx, t); s != nil && len(save.Rules) > 0 && o.For == 0 {
			done.Unsavable = env.unsavable(ctx, s, save)
		}
		return nil
	})
}

// sayStillClosed names addresses that were allowed and that no line opens, as those of
// the machine on the namespace engine.
func (env *Env) sayStillClosed(c *control.Client, room string, rules []firewall.Rule) {
	for _, r := range rules {
		if !r.CIDR.IsSingleIP() || len(r.Ports) == 0 {
			continue
		}
		var now control.Explanation
		host := r.CIDR.Addr().String()
		err := c.Do(control.Request{Op: control.OpExplain, Room: room, Host: host, Port: r.Ports[0].First, NoLookUp: true}, &now)
		if err == nil && !now.Allowed {
			env.warn("%s stays closed: %s", net.JoinHostPort(host, strconv.Itoa(int(r.Ports[0].First))), ReasonText(now.Reason, host, ""))
		}
	}
}

// noRoom says why a worker has no lines to change.
func (env *Env) noRoom(ctx context.Context, e *Running, o RuleChange) error {
	seen, err := e.Look(ctx, true)
	if err != nil {
		return err
	}
	var workers []string
	for _, c := range seen.Containers {
		if c.Role == compose.RoleWorker.String() {
			workers = append(workers, c.Service)
		}
	}
	switch {
	case len(seen.Containers) == 0:
		return notUp(e.ProjectRef)
	case !slices.Contains(workers, o.Worker):
		return Fail(CodeUsage, "project %s has no worker %q", e.Name, o.Worker).Hint("%s", Suggestion(o.Worker, workers))
	}
	return o.noNetwork(o.Worker, networkHint)
}

// noNetwork refuses the change of what has no network; hint says how to give it one.
func (o RuleChange) noNetwork(what, hint string) *Failure {
	if o.Deny {
		return Fail(CodeRefused, "%s has no network (mode none): there is nothing to deny", what)
	}
	return Fail(CodeRefused, "%s has no network (mode none)", what).Hint("%s", hint)
}

// stillNeeded leaves out what is so already, and refuses what would have no
// effect.
func (env *Env) stillNeeded(rooms []roomLines, o RuleChange, until time.Time) ([]firewall.Rule, error) {
	var left []firewall.Rule
	var problems []string
	for _, rule := range o.Rules {
		lines := map[coverage][]string{} // what the rooms say, with the line
		for i := range rooms {
			how, line := rooms[i].coverage(rule, o.Deny, o.Worker == "", until)
			if !slices.Contains(lines[how], line) {
				lines[how] = append(lines[how], line)
			}
		}
		what, no := RuleArg(rule, o.Deny), strings.Join(lines[coveredByDeny], "; ")
		switch {
		case no != "":
			problems = append(problems, fmt.Sprintf("%s is denied, and deny always wins: %s", what, no))
		case lines[notCovered] != nil:
			left = append(left, rule)
		case lines[covered] == nil:
			env.say("%s: every public name and address is allowed already (network: open); nothing changed", what)
		case o.Deny:
			env.say("%s is denied already: %s; nothing changed", what, strings.Join(lines[covered], "; "))
		default:
			env.say("%s is allowed already: %s; nothing changed", what, strings.Join(lines[covered], "; "))
		}
	}
	if len(problems) > 0 {
		f := Fail(CodeRefused, "%s", strings.Join(problems, "\n"))
		if strings.Contains(f.Error(), "`workshop firewall deny") {
			return nil, f.Hint("`workshop firewall reload --reset` takes all live changes back; nothing changed")
		}
		return nil, f.Hint("take that line out of the file and run `workshop firewall reload`; nothing changed")
	}
	return left, nil
}

// inFile names the lines of the file that allow a rule in each of the rooms; empty: in
// one none does.
func inFile(rooms []roomLines, rule firewall.Rule) string {
	var lines []string
	for _, r := range rooms {
		if !firewall.CoveredBy(rule, r.allow) {
			return ""
		}
		lines = appendNew(lines, lineOf(rule, r.allow))
	}
	return strings.Join(lines, "; ")
}

// EndText says when something live ends.
func EndText(until time.Time, deny bool) string {
	if until.IsZero() {
		return RuleChange{Deny: deny}.End()
	}
	return fmt.Sprintf("until %s (%s)", WhenText(until), durationtext.Of(max(0, time.Until(until).Round(time.Second))))
}
