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
	if err := env.reviewSource(ctx, s, UpOptions{}); err != nil {
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
	if err := s.cantSave(o); err != nil {
		return nil, err
	}
	if network.Mode.V == firewall.None {
		file := env.Shown(s.Path)
		if o.Worker == "" {
			return nil, o.noNetwork("the workshop", s.intoNetwork("", file))
		}
		return nil, o.noNetwork(o.Worker, s.networkLine(s.Worker(o.Worker), file))
	}
	room.Mode, room.allow, room.deny = network.Mode.V, filled(network.Allow), filled(network.Deny)
	before, asked := s.text(), o.Rules
	o.Rules, err = env.stillNeeded([]roomLines{room}, o, time.Time{})
	if err != nil {
		return nil, err
	}
	if len(o.Rules) == 0 {
		if without := s.without(before, asked); o.Worker == "" && !o.Deny && len(without) > 0 {
			env.say("not for %s: add it there with --worker", WorkersText(without))
		}
		return nil, nil
	}
	done, err := env.rewrite(ctx, s, o)
	switch {
	case err == nil && done == nil:
		env.say("%s has that already; nothing changed", env.Shown(s.Path))
	case err == nil && o.Worker == "" && !o.Deny:
		done.NotFor = s.without(before, o.Rules)
		not, _ := s.notReached(o)
		for _, n := range not {
			env.say("not for %s: %s", n.workers, n.why)
		}
	}
	return done, err
}

// reviewSource is [Env.ReviewDefinition] of a file that is about to be edited or published:
// lines of a worker would be taken for the person's, also where they were committed.
func (env *Env) reviewSource(ctx context.Context, s *Source, o UpOptions) error {
	name, err := env.projectName(s.Workshop.Name.V, s.Root())
	if err != nil {
		return err
	}
	_, err = env.review(ctx, &Project{ProjectRef: ProjectRef{Name: name, Dir: s.Root(), File: s.Path}, Source: s}, o)
	return err
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

// withLines puts the lines into the text of the file. said is what to say of them once
// they are written.
func (env *Env) withLines(s *Source, text []byte, o RuleChange) (after []byte, said []Event, err error) {
	for _, l := range o.lines() {
		where, notes, err := s.placesOf(text, o, l)
		if err != nil {
			return nil, nil, err
		}
		if text, err = edit.Add(text, where...); err != nil {
			return nil, nil, env.cantEdit(s, o, err)
		}
		said = append(said, notes...)
	}
	return text, said, nil
}

// placesOf are the lists that a line goes to. A worker with lists of its own gets it
// there, and its workshop has to cover it (B40).
func (s *Source) placesOf(text []byte, o RuleChange, l ruleLine) (where []edit.Line, said []Event, err error) {
	line := edit.Line{Worker: o.Worker, Deny: o.Deny, Text: l.text, Comment: o.comment}
	if o.Worker == "" {
		return []edit.Line{line}, nil, nil
	}
	base := &s.Workshop.Container.Network
	covered := o.Deny || coveredBy(l.rules, base.Allow) || base.Mode.V == firewall.Open && !slices.ContainsFunc(l.rules, func(r firewall.Rule) bool { return !isPublic(r) })
	own := len(s.inheriting(text, line, []string{o.Worker})) == 0
	if o.Deny {
		own = len(edit.Inheriting(text, line, []string{o.Worker})) == 0
	}
	if own && covered {
		return []edit.Line{line}, nil, nil
	}
	others := s.sharing(text, line)
	if len(others) > 0 && !(own && o.forOthers) {
		return nil, nil, s.sharedList(text, o, own, others)
	}
	whole := line
	whole.Worker = ""
	if !own {
		said = append(said, Event{Kind: Notice, Text: o.Worker + " has no list of its own: the line is added to the workshop's, which no other worker uses"})
		return []edit.Line{whole}, said, nil
	}
	said = append(said, Event{Kind: Notice, Text: "the line goes to the workshop's list too: a worker may only narrow what its workshop grants (B40)"})
	if len(others) > 0 {
		said = append(said, Event{Kind: Warning, Text: fmt.Sprintf("%s: for %s too, as that list is theirs", l.text, WorkersText(others))})
	}
	return []edit.Line{whole, line}, said, nil
}

// sharing are the other workers that a line of the workshop's list reaches.
func (s *Source) sharing(text []byte, line edit.Line) (names []string) {
	for i := range s.Workshop.Workers {
		if w := &s.Workshop.Workers[i]; w.Name != line.Worker && w.Container.Network.Mode.V != firewall.None {
			names = append(names, w.Name)
		}
	}
	if line.Deny {
		return names
	}
	return s.inheriting(text, line, names)
}

// sharedList refuses a line for one worker that others would get too, and says what to
// write by hand: a worker's own deny lines are added to the workshop's, its own allow
// list replaces the workshop's and must be covered by it (B40).
func (s *Source) sharedList(text []byte, o RuleChange, own bool, others []string) *Failure {
	var list []string
	if o.Deny {
		for _, l := range o.lines() {
			list = append(list, l.text)
		}
		alone := fmt.Sprintf("for %s alone, write:\n%s", o.Worker, withNetwork(text, o.Worker, "deny", list))
		if as, _, _ := strings.Cut(s.Worker(o.Worker).Import(), "--"); as != "" {
			alone = fmt.Sprintf("for what is imported as %s alone, add `deny: [%s]` to network of grant.%s", as, strings.Join(list, ", "), as)
		}
		return Fail(CodeUsage, "%s has no deny list of its own, and a line of the workshop's is for %s too; nothing was written", o.Worker, WorkersText(others)).
			Hint("for all of them: `--save` without --worker; %s", alone)
	}
	list = ruleTexts(s.Workshop.Container.Network.Allow)
	alone := fmt.Sprintf("for %s alone: give the others the list that they have now, then run it with --save:", o.Worker)
	for _, name := range others {
		if as, _, _ := strings.Cut(s.Worker(name).Import(), "--"); as != "" {
			alone += fmt.Sprintf("\n  in the network of grant.%s: allow: [%s]", as, strings.Join(list, ", "))
		} else {
			alone += "\n" + withNetwork(text, name, "allow", list)
		}
	}
	if own {
		return Fail(CodeUsage, "a line for %s has to be in the workshop's list, too, as a worker only narrows (B40), and that list is for %s as well; nothing was written", o.Worker, WorkersText(others)).
			Hint("for all of them: `--save` without --worker, then again with it; %s", alone)
	}
	return Fail(CodeUsage, "%s has no allow list of its own, and a line of the workshop's is for %s too; nothing was written", o.Worker, WorkersText(others)).
		Hint("for all of them: `--save` without --worker; %s", alone)
}

// ruleTexts are lines of allow as a file has them on one line, a preset in the place of
// what it stands for.
func ruleTexts(rules []firewall.Rule) (list []string) {
	for _, r := range rules {
		text := RuleLine(r, false)
		if r.Preset != "" {
			text = "{preset: " + r.Preset + "}"
		}
		list = appendNew(list, text)
	}
	return list
}

// cantEdit says where the file can't be edited, and what to write by hand.
func (env *Env) cantEdit(s *Source, o RuleChange, err error) *Failure {
	file := env.Shown(s.Path)
	switch below := s.Workshop.Base != "" && errors.Is(err, edit.ErrNoNetwork); {
	case below && o.Deny:
		return Fail(CodeFailed, "%s has no list of its own; nothing was written", file).
			Hint("write below `container:` `network: {deny: [%s]}`: it is added to those of the base", o.lines()[0].text)
	case below:
		return Fail(CodeFailed, "%s has no list of its own; nothing was written", file).Hint("%s", s.wholeList(s.Workshop.Container.Network.Allow))
	}
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

// without are the workers that lack one of the rules although the workshop's list has
// them: those with allow lists of their own in the text of the file.
func (s *Source) without(text []byte, rules []firewall.Rule) (names []string) {
	for i := range s.Workshop.Workers {
		w := &s.Workshop.Workers[i]
		if w.From == "" && w.Container.Network.Mode.V != firewall.None && !coveredBy(rules, w.Container.Network.Allow) {
			names = append(names, w.Name)
		}
	}
	inherit := edit.Inheriting(text, edit.Line{Text: RuleLine(rules[0], false)}, names)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(inherit, name) })
}

func sameRules(x, y []firewall.Rule) bool {
	return slices.EqualFunc(x, y, func(a, b firewall.Rule) bool { return a.Line == b.Line && RuleLine(a, false) == RuleLine(b, false) })
}

// rewrite writes changes into the workshop file; nil: it has them already.
func (env *Env) rewrite(ctx context.Context, s *Source, changes ...RuleChange) (*Rewritten, error) {
	before, err := boundedfile.Read(s.Path, workshop.MaxFileSize)
	after := before
	var said []Event
	for _, o := range changes {
		if err == nil {
			var notes []Event
			after, notes, err = env.withLines(s, after, o)
			said = append(said, notes...)
		}
	}
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	if err := env.replaceFile(ctx, s, before, after); err != nil {
		return nil, err
	}
	for _, e := range said {
		env.event(e)
	}
	return &Rewritten{File: env.Shown(s.Path), Lines: changedLines(before, after)}, nil
}
