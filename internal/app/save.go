package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// Rewritten is a workshop file that was changed.
type Rewritten struct {
	File  string   // as the user would write it
	Lines []string // that differ, as of [changedLines]
	// NotFor are the workers that a line of the workshop doesn't reach: they have
	// allow lists of their own.
	NotFor []string
	// Learning: the project learns, as far as the last `up --learn` says.
	Learning bool
}

// SaveRules writes a change into the workshop file; nil: the file has it already.
func (env *Env) SaveRules(ctx context.Context, o RuleChange) (*Rewritten, error) {
	s, err := env.Load(ctx)
	if err != nil {
		return nil, err
	}
	network := &s.Workshop.Container.Network
	room := roomLines{known: true}
	if o.Worker != "" {
		if err := s.CheckWorkers([]string{o.Worker}); err != nil {
			return nil, err
		}
		network = &s.Worker(o.Worker).Container.Network
	}
	if network.Mode.V == firewall.None {
		if o.Worker == "" {
			return nil, Fail(CodeRefused, "the workshop has no network (mode none)").Hint("%s", networkHint)
		}
		return nil, noNetwork(o.Worker)
	}
	room.Mode, room.allow, room.deny = network.Mode.V, filled(network.Allow), filled(network.Deny)
	o.Rules, err = env.stillNeeded([]roomLines{room}, o, time.Time{})
	if err != nil || len(o.Rules) == 0 {
		return nil, err
	}
	done, err := env.rewrite(ctx, s, o)
	switch {
	case err == nil && done == nil:
		env.say("%s has that already; nothing changed", env.Shown(s.Path))
	case err == nil && o.Worker == "" && !o.Deny:
		done.NotFor = ownLists(s.Workshop)
	}
	return done, err
}

// ruleLine is one line of a list, with its rules.
type ruleLine struct {
	text  string
	rules []firewall.Rule
}

// lines are those that a change writes.
func (o RuleChange) lines() (out []ruleLine) {
	if o.text != "" {
		return []ruleLine{{o.text, o.Rules}}
	}
	for _, r := range o.Rules {
		out = append(out, ruleLine{RuleLine(r, o.Deny), []firewall.Rule{r}})
	}
	return out
}

// withLines puts the lines into the text of the file. A worker with lists of
// its own gets the line there, and its workshop has to cover it (B40).
func (env *Env) withLines(s *Source, text []byte, o RuleChange) ([]byte, error) {
	base := &s.Workshop.Container.Network
	for _, l := range o.lines() {
		line := edit.Line{Worker: o.Worker, Deny: o.Deny, Text: l.text, Comment: o.comment}
		where := []edit.Line{line}
		if o.Worker != "" {
			whole := line
			whole.Worker = ""
			_, err := edit.Add(text, line)
			covered := o.Deny || coveredBy(l.rules, base.Allow) || base.Mode.V == firewall.Open && !slices.ContainsFunc(l.rules, func(r firewall.Rule) bool { return !isPublic(r) })
			switch {
			case errors.Is(err, edit.ErrInherits):
				if others := s.sharing(o); len(others) > 0 {
					return nil, env.sharedList(s, o, others)
				}
				where = []edit.Line{whole}
				env.say("%s has no list of its own: the line is added to the workshop's, which no other worker uses", o.Worker)
			case !covered:
				where = []edit.Line{whole, line}
				env.say("the line goes to the workshop's list too: a worker may only narrow what its workshop grants (B40)")
			}
		}
		var err error
		if text, err = edit.Add(text, where...); err != nil {
			return nil, env.cantEdit(s, err)
		}
	}
	return text, nil
}

// sharing are the other workers that a line of the workshop's list reaches.
func (s *Source) sharing(o RuleChange) (names []string) {
	own := ownLists(s.Workshop)
	for i := range s.Workshop.Workers {
		w := &s.Workshop.Workers[i]
		if w.Name != o.Worker && w.Container.Network.Mode.V != firewall.None && (o.Deny || !slices.Contains(own, w.Name)) {
			names = append(names, w.Name)
		}
	}
	return names
}

// sharedList refuses a line for one worker that others would get too, and says what to
// write by hand: a worker's own deny lines are added to the workshop's, its own allow
// list replaces the workshop's and must be covered by it (B40).
func (env *Env) sharedList(s *Source, o RuleChange, others []string) *Failure {
	var list []string
	who, alone := []string{o.Worker}, fmt.Sprintf("for %s alone, write:", o.Worker)
	if o.Deny {
		for _, l := range o.lines() {
			list = append(list, l.text)
		}
	} else {
		who, alone = others, fmt.Sprintf("for %s alone, do that after you gave the others this list:", o.Worker)
		for _, r := range s.Workshop.Container.Network.Allow {
			text := RuleLine(r, false)
			if r.Preset != "" {
				text = "{preset: " + r.Preset + "}"
			}
			list = appendNew(list, text)
		}
	}
	for _, name := range who {
		alone += fmt.Sprintf("\n- {name: %s, container: {network: {%s: [%s]}}}", name, o.Verb(), strings.Join(list, ", "))
	}
	return Fail(CodeUsage, "%s has no %s list of its own, and a line of the workshop's is for %s too; nothing was written", o.Worker, o.Verb(), WorkersText(others)).
		Hint("for all of them: leave out --worker; %s", alone)
}

// cantEdit says where the file can't be edited, and what to write by hand.
func (env *Env) cantEdit(s *Source, err error) *Failure {
	file := env.Shown(s.Path)
	by, ok := errors.AsType[*edit.Error](err)
	if !ok {
		return Fail(CodeFailed, "%s: %w; nothing was written", file, err)
	}
	if by.Line > 0 {
		file = fmt.Sprintf("%s:%d", file, by.Line)
	}
	f := Fail(CodeFailed, "%s: %s; nothing was written", file, by.Summary)
	if by.Hint != "" {
		f.Hint("%s", by.Hint)
	}
	return f
}

// ownLists are the workers that don't use the workshop's allow list.
func ownLists(w *workshop.Workshop) []string {
	var own []string
	for i := range w.Workers {
		if n := &w.Workers[i].Container.Network; n.Mode.V != firewall.None && !sameRules(n.Allow, w.Container.Network.Allow) {
			own = append(own, w.Workers[i].Name)
		}
	}
	return own
}

func sameRules(x, y []firewall.Rule) bool {
	return slices.EqualFunc(x, y, func(a, b firewall.Rule) bool { return a.Line == b.Line && RuleLine(a, false) == RuleLine(b, false) })
}

// rewrite writes changes into the workshop file; nil: it has them already.
func (env *Env) rewrite(ctx context.Context, s *Source, changes ...RuleChange) (*Rewritten, error) {
	before, err := boundedfile.Read(s.Path, workshop.MaxFileSize)
	after := before
	for _, o := range changes {
		if err == nil {
			after, err = env.withLines(s, after, o)
		}
	}
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	if err := env.replaceFile(ctx, s, before, after); err != nil {
		return nil, err
	}
	return &Rewritten{File: env.Shown(s.Path), Lines: changedLines(before, after)}, nil
}
