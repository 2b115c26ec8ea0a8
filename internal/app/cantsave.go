package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// notWritten ends what is said where --save writes nothing.
const notWritten = "; nothing was written"

// cantSave says why no line of the file allows what a change does, and who can write one
// instead: a base neither allows nor opens it, or the lists of the workers are another
// file's (B47). nil: a line may.
func (s *Source) cantSave(o RuleChange) error {
	if o.Deny {
		return nil // each file may deny more
	}
	if beyond := s.beyondBase(o.Rules); beyond != nil {
		beyond.Err = fmt.Errorf("%w%s", beyond.Err, notWritten)
		return beyond
	}
	if not, reached := s.notReached(o); len(not) > 0 && !reached {
		return Fail(CodeRefused, "%s%s", not[0].why, notWritten)
	}
	return nil
}

// beyondBase says which of the rules the base of the workshop neither allows nor opens; nil:
// none.
func (s *Source) beyondBase(rules []firewall.Rule) *Failure {
	var base string
	var beyond []string
	for _, r := range rules {
		if id := s.Workshop.BeyondBase(r); id != "" {
			base, beyond = id, append(beyond, RuleLine(r, false))
		}
	}
	if base == "" {
		return nil
	}
	return Fail(CodeRefused, "the base %s neither allows nor opens %s", base, strings.Join(beyond, ", ")).
		Hint("who keeps it can open it: `open: {network: {allow: [%s]}}`", strings.Join(beyond, ", "))
}

// notReachedBy are workers that no line of the file lets reach something, and why.
type notReachedBy struct{ workers, why string }

// notReached are the workers whose lists are another file's, of those that a change is for.
// reached: there are others, or ones that reach it already.
func (s *Source) notReached(o RuleChange) (not []notReachedBy, reached bool) {
	for i := range s.Workshop.Workers {
		w := &s.Workshop.Workers[i]
		if w.Container.Network.Mode.V == firewall.None || o.Worker != "" && w.Name != o.Worker {
			continue
		}
		why := s.listFor(w.Name).elsewhere
		at := slices.IndexFunc(not, func(n notReachedBy) bool { return n.why == why })
		switch {
		case why == "" || coveredBy(o.Rules, w.Container.Network.Allow):
			reached = true
		case at < 0:
			not = append(not, notReachedBy{w.Name, why})
		default:
			not[at].workers += ", " + w.Name
		}
	}
	return not, reached
}

// unsavable says what --save would of a change that is live: why it would refuse it, and
// what to do instead; "" where it would write it.
func (env *Env) unsavable(ctx context.Context, s *Source, o RuleChange) string {
	err := s.cantSave(o)
	text := s.text()
	if err == nil {
		text, _, err = env.withLines(s, text, o)
	}
	if err == nil {
		fresh, failed := env.read(ctx, s.Path, reading{like: s, text: text})
		switch {
		case failed != nil:
			return "" // it says so itself
		case fresh.Workshop == nil:
			return fmt.Sprintf("with it, %s would be invalid: %s", env.Shown(s.Path), fresh.onlyErrors().Diagnostics[0].Summary)
		}
		err = s.keepsAllowed(fresh)
	}
	if err == nil {
		return ""
	}
	return strings.Join(slices.Concat([]string{strings.TrimSuffix(err.Error(), notWritten)}, Hints(err)), "; ")
}
