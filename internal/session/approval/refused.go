package approval

import (
	"cmp"
	"errors"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/workshop"
)

// RefusedError says why a call may not run (B42), and what to do.
type RefusedError struct {
	Call Call
	Why  string
	// Advice says to a model what to do; who reads as a person needs none.
	Advice string
	// Hint says to the person how such calls can pass; it is not for a model.
	Hint string
	err  error
}

// Error is one sentence for a model: what is refused, why, and what to do.
func (e *RefusedError) Error() string {
	if e.Advice == "" {
		return e.Person()
	}
	return e.Person() + "; " + e.Advice
}

// Person is what is refused, and why.
func (e *RefusedError) Person() string {
	return e.Call.Tool + " of " + e.Call.Worker + " was not approved (B42): " + e.Why
}

// ForModel is Error without the number of the promise, which says nothing to a model.
func (e *RefusedError) ForModel() string {
	return strings.Replace(e.Error(), " (B42)", "", 1)
}

// Unwrap returns what kept a person from being asked.
func (e *RefusedError) Unwrap() error { return e.err }

var errChanged = errors.New("the file was changed by another program")

// denied says what denies.
func (g *Gate) denied(c Call, v Verdict) *RefusedError {
	e := &RefusedError{Call: c, Why: v.Why}
	switch {
	case v.rule != nil && v.rule.Approval == workshop.ApprovalDeny:
		e.Hint = "nobody is asked about what a rule denies"
	case g.Policy.Max == workshop.ApprovalDeny:
		e.Hint = "to be asked, set WORKSHOP_APPROVALS_MAX=ask, or `approvals_max: ask` in " + cmp.Or(g.Settings, "config.yaml")
	case g.Policy.Strict:
		e.Hint = g.howToAllow(c, v)
	}
	return e
}

// unanswered is for calls that need a yes where nobody is.
func (g *Gate) unanswered(c Call, v Verdict) *RefusedError {
	return &RefusedError{Call: c, Why: "it needs a person's yes, and nobody can be asked", Advice: "don't retry, tell the person", Hint: g.howToAllow(c, v)}
}

// ErrClosed is what an [Asker] returns where the person closed the question: that is
// neither a yes nor a no.
var ErrClosed = errors.New("the question was closed without an answer")

// AskError is what an [Asker] returns that got no answer which it understands. Why is
// for a model, Detail for the person.
type AskError struct{ Why, Detail string }

func (e *AskError) Error() string { return e.Why + ": " + e.Detail }

// notAnswered is for calls about which a person was asked in vain.
func notAnswered(c Call, why string, err error) *RefusedError {
	return &RefusedError{Call: c, Why: why, Advice: "tell the person, and call it again only if they ask for it", err: err}
}

// maxRule bounds a rule that a hint names, in bytes: who reads the hint has one line
// to write.
const maxRule = 90

// howToAllow says the one best way how such a call can pass without a person, the
// narrowest first; docs/approvals.md has the others.
func (g *Gate) howToAllow(c Call, v Verdict) string {
	r := g.offered(c, v)
	again := "`workshop call " + c.Worker + " " + shellquote.Quote(c.Tool) + " …`"
	switch {
	case v.unsure || r == nil:
		return "no rule can let just this call pass: run it where a terminal can ask you, or with --approve-all"
	case g.Remember != nil && v.capped && *r == (Rule{v.rule0().Tool, v.rule0().Match}):
		return "to let such calls pass, answer always in a terminal: " + again + "; for all rules of all workshops: `approvals_max: auto` in " + g.Settings
	case len(r.Line()) > maxRule:
		return "to let such calls pass, answer always in a terminal: " + again
	case g.Policy.Max == workshop.ApprovalAuto:
		return "to let such calls pass, put `" + r.Line() + "` first in approvals.rules"
	case g.Remember == nil:
		return "to let such calls pass, put `" + r.Line() + "` first in approvals.rules, and set WORKSHOP_APPROVALS_MAX=auto"
	}
	return "to let such calls pass, answer always in a terminal, which adds `" + r.Line() + "`: " + again
}

// rule0 is the rule of the file that decided, or none.
func (v *Verdict) rule0() workshop.ApprovalRule {
	if v.rule == nil {
		return workshop.ApprovalRule{}
	}
	return *v.rule
}
