package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop/edit"
)

// roomLines are the rules of a room.
type roomLines struct {
	control.RoomState
	// known is false where the workshop file isn't what the guard has any more:
	// then only live lines are here.
	known       bool
	allow, deny []firewall.Rule
	live        []firewall.Live
}

// roomsOf returns the rooms that a change is about: the worker's, or all.
func (env *Env) roomsOf(ctx context.Context, t ProjectRef, s control.State, worker string) []roomLines {
	var rooms []roomLines
	policy := env.filePolicy(ctx, t, s)
	for _, r := range s.Rooms {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		room := roomLines{RoomState: r}
		for _, l := range s.Live {
			if l.Room == "" || l.Room == r.Room {
				room.live = append(room.live, l)
			}
		}
		if policy != nil {
			room.known = true
			if i := slices.IndexFunc(policy.Rooms, func(p firewall.RoomPolicy) bool { return p.Room == r.Room }); i >= 0 {
				room.allow, room.deny = filled(policy.Rooms[i].Allow), filled(policy.Rooms[i].Deny)
			}
		}
		rooms = append(rooms, room)
	}
	return rooms
}

// filePolicy is the policy of the workshop file, if it is the one that the guard has;
// else nil.
func (env *Env) filePolicy(ctx context.Context, t ProjectRef, s control.State) *firewall.Policy {
	p := env.asGuardHas(env.savedPolicy(ctx, t))
	if !isPolicyOf(p, s) {
		return nil
	}
	return p
}

// savedPolicy is the policy of the workshop file, whatever runs; nil where the file
// can't be read, a worker may have written it, or no worker has a network.
func (env *Env) savedPolicy(ctx context.Context, t ProjectRef) *firewall.Policy {
	_, p := env.saved(ctx, t)
	return p
}

// saved is [Env.savedPolicy] with the file; both are nil together.
func (env *Env) saved(ctx context.Context, t ProjectRef) (*Source, *firewall.Policy) {
	if t.File == "" {
		return nil, nil
	}
	s, err := env.Read(ctx, t.File)
	if err != nil || s.Workshop == nil {
		return nil, nil
	}
	if list, err := env.redefined(t.Name, s.definition()); err != nil || len(list) > 0 {
		return nil, nil
	}
	c, err := compose.Compile(s.Workshop)
	if err != nil || c.Policy == nil {
		return nil, nil
	}
	return s, c.Policy
}

// inheriting are those of the workers whose list is the workshop's: they have none of their
// own, neither in the text of the file nor in the one that they come from.
func (s *Source) inheriting(text []byte, line edit.Line, names []string) []string {
	return slices.DeleteFunc(edit.Inheriting(text, line, names), func(name string) bool {
		w := s.Worker(name)
		return w == nil || w.From != "" && !sameRules(w.Container.Network.Allow, s.Workshop.Container.Network.Allow)
	})
}

// fileList is the list of the file that a line goes to which lets a worker reach something.
type fileList struct {
	text string // empty: network.allow
	// elsewhere says why no line of the file helps: the worker's list is that of a source
	// (B47). It is empty where one does.
	elsewhere string
}

// String names the list.
func (l fileList) String() string { return cmp.Or(l.text, "network.allow") }

// listFor is where lines for a worker go.
func (s *Source) listFor(worker string) (l fileList) {
	text := s.text()
	if s.Workshop == nil || text == nil || s.Worker(worker) == nil {
		return l
	}
	w, line, name := s.Worker(worker), edit.Line{Text: "example.org"}, []string{worker}
	const publisher = ", and no line here adds to that: who keeps %s can"
	switch {
	case len(s.inheriting(text, line, name)) > 0 && s.Workshop.Base != "":
		l.text = "network.allow (which replaces that of the base, and needs what " + s.Workshop.Base + " allows or opens)"
	case len(s.inheriting(text, line, name)) > 0:
	case len(edit.Inheriting(text, line, name)) == 0:
		l.text = worker + "'s own network.allow (and the workshop's, if that lacks it)"
	case w.Import() != "":
		l.elsewhere = fmt.Sprintf("an import gets what its `needs` name"+publisher, w.From)
	default:
		l.elsewhere = fmt.Sprintf(worker+" has a list of its own in the base"+publisher, w.From)
	}
	return l
}

// listsElsewhere are the workers that no line of the file helps, by their names.
func (s *Source) listsElsewhere() map[string]bool {
	out := map[string]bool{}
	for i := range s.Workshop.Workers {
		if w := &s.Workshop.Workers[i]; w.From != "" {
			out[w.Name] = s.listFor(w.Name).elsewhere != ""
		}
	}
	return out
}

// filled puts the values of variables into lines, as the guard does.
func filled(rules []firewall.Rule) []firewall.Rule {
	out := slices.Clone(rules)
	for i := range out {
		out[i] = out[i].Filled()
	}
	return out
}

// coverage is what the rules of a room say already about a change of them.
type coverage int

const (
	notCovered    coverage = iota // the change changes something
	covered                       // it is so already
	openMode                      // the room's mode is open
	coveredByDeny                 // a deny line has it: allowing it would do nothing
)

// coverage returns it, and the line that covers the change. everywhere is a change of all
// rooms; until is when it would end, zero: not before the guard.
func (r *roomLines) coverage(rule firewall.Rule, deny, everywhere bool, until time.Time) (coverage, string) {
	allows, denies := slices.Clone(r.allow), slices.Clone(r.deny)
	takesBack := false
	for _, l := range r.live {
		line := l.Rule
		line.Line = liveText(l)
		back := !deny && l.Deny && l.Rule.Target() == rule.Target() && (l.Room != "" || everywhere)
		lasts := l.Until.IsZero() || !until.IsZero() && !l.Until.Before(until)
		switch {
		case l.Deny && deny && lasts:
			denies = append(denies, line)
		case back:
			// What is said later about the same target counts.
			takesBack = takesBack || portsMeet(rule.Ports, l.Rule.Ports)
		case l.Deny && !deny:
			denies = append(denies, line)
		case !l.Deny && lasts:
			allows = append(allows, line)
		}
	}
	if line, ok := deniedBy(rule, denies); ok {
		if deny {
			return covered, line
		}
		return coveredByDeny, line
	}
	switch {
	case deny, takesBack:
		return notCovered, ""
	case firewall.CoveredBy(rule, allows):
		return covered, lineOf(rule, allows)
	case r.Mode == firewall.Open && isPublic(rule):
		return openMode, ""
	}
	return notCovered, ""
}

// deniedBy returns the line of denies that covers all of a rule.
func deniedBy(rule firewall.Rule, denies []firewall.Rule) (line string, ok bool) {
	// A deny line is about who is meant, not about how it is opened.
	rule.Private, rule.ECH, rule.Upload = false, false, firewall.Budget{}
	if !firewall.CoveredBy(rule, denies) {
		return "", false
	}
	return lineOf(rule, denies), true
}

// portsMeet reports whether two lists have a port in common.
func portsMeet(x, y []firewall.PortRange) bool {
	return !slices.Equal(firewall.SubtractPorts(x, y), firewall.NormalizePorts(x))
}

// liveText names a live line.
func liveText(l firewall.Live) string {
	text := "`workshop firewall " + RuleChange{Deny: l.Deny}.Verb() + " " + RuleArg(l.Rule, l.Deny) + "`"
	if !l.Until.IsZero() {
		text += ", until " + WhenText(l.Until)
	}
	return text
}

// lineOf names the line that covers a rule; several lines may do it together.
func lineOf(rule firewall.Rule, lines []firewall.Rule) string {
	for _, l := range lines {
		switch {
		case !firewall.CoveredBy(rule, []firewall.Rule{l}):
		case l.Line == "" || l.Line[0] == '`':
			return l.Line
		case l.Preset != "":
			return "preset " + l.Preset + " at " + l.Line
		default:
			return l.Target() + " at " + l.Line
		}
	}
	return "several lines together"
}

// isPublic reports whether a rule opens nothing but what mode open reaches too.
func isPublic(r firewall.Rule) bool {
	if !r.CIDR.IsValid() {
		return !r.Private && !r.ECH
	}
	c, ok := firewall.ClassifyRange(r.CIDR)
	return ok && c == firewall.Public
}
