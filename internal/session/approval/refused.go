package approval

import (
	"errors"
	"strings"

	"github.com/llmdo/workshop/workshop"
)

// RefusedError says why a call may not run (B42), and what to do.
type RefusedError struct {
	Call Call
	Why  string
	// Hint says to the person how such calls can pass; it is not for a model.
	Hint string
	err  error
}

// Error is one sentence: what is refused, and why.
func (e *RefusedError) Error() string {
	return e.Call.Tool + " of " + e.Call.Worker + " was not approved (B42): " + e.Why
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
		e.Hint = "your config.yaml, or WORKSHOP_APPROVALS_MAX, may say ask"
	case g.Policy.Strict:
		e.Hint = g.howToAllow(c, v)
	}
	return e
}

// unanswered is for calls that need a yes where nobody is.
func (g *Gate) unanswered(c Call, v Verdict) *RefusedError {
	return &RefusedError{Call: c, Why: "it needs a person's yes, and nobody can be asked; don't retry, tell the person", Hint: g.howToAllow(c, v) + " (asked because: " + v.Why + ")"}
}

// howToAllow says how such a call can pass without a person, as exactly as it
// is known.
func (g *Gate) howToAllow(c Call, v Verdict) string {
	var ways []string
	r := g.offered(c, v)
	switch {
	case v.unsure || r == nil:
		ways = append(ways, "no rule can let just this call pass")
	case g.Policy.Max == workshop.ApprovalAuto && !v.capped:
		ways = append(ways, "to let such calls pass, put `"+r.Line()+"` at the top of approvals.rules of the workshop.yaml")
	case v.capped && *r == (Rule{v.rule0().Tool, v.rule0().Match}):
		ways = append(ways, "to let such calls pass, set `approvals_max: auto` in ~/.config/workshop/config.yaml (for every file), or answer always to it once in a terminal")
	default:
		ways = append(ways, "to let such calls pass, answer always to it once in a terminal, or put `"+r.Line()+"` at the top of approvals.rules of the workshop.yaml and set `approvals_max: auto` in ~/.config/workshop/config.yaml (for every file)")
	}
	if g.Asker == nil && !g.Policy.Strict {
		ways = append(ways, "run it in a terminal, set approvals_command or approvals_socket, or say yes to everything by --approve-all")
	}
	return strings.Join(ways, "; ")
}

// rule0 is the rule of the file that decided, or none.
func (v *Verdict) rule0() workshop.ApprovalRule {
	if v.rule == nil {
		return workshop.ApprovalRule{}
	}
	return *v.rule
}
