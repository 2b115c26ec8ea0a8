package app

import (
	"context"
	"maps"
	"slices"

	"github.com/llmdo/workshop/firewall"
)

// WriteSuggested puts the lines into the workshop file: into a worker's own list where
// it has one, else into the workshop's; nil: nothing was written.
func (env *Env) WriteSuggested(ctx context.Context, found *Suggestions) (*Rewritten, error) {
	s := found.source
	if len(found.Allow) > maxWritten {
		return nil, Fail(CodeRefused, "these are %d lines, more than the %d that are written at once; nothing was written", len(found.Allow), maxWritten).
			Hint("paste those that you know, or see which worker asks for so many names: `workshop firewall log`")
	}
	if err := env.reviewSource(ctx, s, UpOptions{}); err != nil {
		return nil, err
	}
	var changes []RuleChange
	for _, l := range found.Allow {
		if err := s.beyondBase(l.rules); err != nil {
			env.warn("left out: %v", err)
			for _, hint := range err.AllHints() {
				env.hint("%s", hint)
			}
			continue
		}
		for _, worker := range l.listsOf(s, found.request.Worker) {
			changes = append(changes, RuleChange{Rules: l.rules, Worker: worker, comment: l.Comment(), text: l.Line, forOthers: true})
		}
	}
	done, err := env.rewrite(ctx, s, changes...)
	switch {
	case err != nil:
		return nil, err
	case done == nil:
		env.say("nothing was written")
		return nil, nil
	}
	if name, err := env.projectName(s.Workshop.Name.V, s.Root()); err == nil {
		done.Learning = env.mayLearn(name)
	}
	return done, nil
}

// listsOf are the lists that get a line: "" is the workshop's, a name the
// worker's own.
func (l *SuggestedLine) listsOf(s *Source, worker string) []string {
	lists := map[string]bool{}
	for _, name := range l.Workers {
		w := s.Worker(name)
		if w == nil || w.From != "" && s.listFor(name).elsewhere != "" || w.Container.Network.Mode.V == firewall.None || worker != "" && name != worker || l.coveredBy(w.Container.Network.Allow) {
			continue
		}
		if sameRules(w.Container.Network.Allow, s.Workshop.Container.Network.Allow) {
			name = ""
		}
		lists[name] = true
	}
	return slices.Sorted(maps.Keys(lists))
}

// coveredBy reports whether lines open what was asked for.
func (l *SuggestedLine) coveredBy(lines []firewall.Rule) bool {
	return coveredBy(l.rules, lines) || l.LookedUp && opensName(lines, l.host)
}
