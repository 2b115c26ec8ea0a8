package approval

import (
	"cmp"
	"context"
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
	// Because says to the person why the call needs a yes, Hint how such calls can pass,
	// and Again has a command line for that; empty: there is none. They are not for a model.
	Because, Hint, Again string
	err                  error
}

// Error is one sentence for a model: what is refused, why, and what to do.
func (e *RefusedError) Error() string {
	if e.Advice == "" {
		return e.what()
	}
	return e.what() + "; " + e.Advice
}

func (e *RefusedError) what() string {
	return e.Call.Tool + " of " + e.Call.Worker + " was not approved (B42): " + e.Why
}

// Person is what is refused, and why.
func (e *RefusedError) Person() string {
	if e.Because == "" {
		return e.what()
	}
	return e.what() + " (" + e.Because + ")"
}

// PersonHint is Hint with the command line.
func (e *RefusedError) PersonHint() string {
	if e.Again == "" {
		return e.Hint
	}
	return e.Hint + ": `" + e.Again + "`"
}

// ForModel is Error without the number of the promise, which says nothing to a model.
func (e *RefusedError) ForModel() string {
	return strings.Replace(e.Error(), " (B42)", "", 1)
}

// Unwrap returns what kept a person from being asked.
func (e *RefusedError) Unwrap() error { return e.err }

var errChanged = errors.New("the file was changed by another program")

// denied says what denies.
func (g *Gate) denied(ctx context.Context, c Call, v Verdict) *RefusedError {
	e := &RefusedError{Call: c, Why: v.Why}
	switch {
	case v.rule != nil && v.rule.Approval == workshop.ApprovalDeny:
		e.Hint = "nobody is asked about what a rule denies"
	case g.Policy.Max == workshop.ApprovalDeny:
		e.Hint = "to be asked, set WORKSHOP_APPROVALS_MAX=ask, or `approvals_max: ask` in " + cmp.Or(g.Settings, "config.yaml")
	case g.Policy.Strict:
		e.Hint, e.Again = g.howToAllow(ctx, c, v)
	}
	return e
}

// unanswered is for calls that need a yes where nobody is.
func (g *Gate) unanswered(ctx context.Context, c Call, v Verdict) *RefusedError {
	e := &RefusedError{Call: c, Why: "it needs a person's yes, and nobody can be asked", Because: v.Why, Advice: "don't retry, tell the person"}
	e.Hint, e.Again = g.howToAllow(ctx, c, v)
	return e
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

const (
	// maxRule bounds a rule that a hint names, in bytes: who reads the hint has one line
	// to write.
	maxRule = 90
	// maxAgain bounds a command line that a hint names, likewise.
	maxAgain = 200
)

// howToAllow says the one best way how such a call can pass without a person, the
// narrowest first, and has a command line for it; docs/approvals.md has the others.
func (g *Gate) howToAllow(ctx context.Context, c Call, v Verdict) (hint, again string) {
	r := g.offered(c, v)
	if v.unsure || r == nil {
		return "no rule can let just this call pass: run it where a terminal can ask you, or with --approve-all", ""
	}
	const begin = "to let such calls pass, "
	answer, once := "answer always in a terminal", ""
	if g.OneCall {
		answer = "run this in a terminal and answer always"
		if !g.Policy.Strict {
			once = "; for this one, add --approve-all"
		}
	} else {
		again = commandLine(c)
	}
	if g.Remember != nil {
		if _, err := g.Remember.Preview(ctx, *r, v.rule); err != nil {
			return begin + "run it where a terminal can ask you, and answer once or session: a rule can't be kept (" + err.Error() + ")" + once, again
		}
	}
	switch {
	case g.Remember != nil && v.capped && *r == (Rule{v.rule0().Tool, v.rule0().Match}):
		return begin + answer + ", or set `approvals_max: auto` in " + g.Settings + " (for every workshop)" + once, again
	case len(r.Line()) > maxRule:
		return begin + answer + once, again
	case g.Policy.Max == workshop.ApprovalAuto:
		return begin + "put `" + r.Line() + "` first in approvals.rules" + g.in() + once, ""
	case g.Remember == nil:
		return begin + "put `" + r.Line() + "` first in approvals.rules" + g.in() + ", and set WORKSHOP_APPROVALS_MAX=auto" + once, ""
	}
	return begin + answer + ", which adds `" + r.Line() + "` to " + cmp.Or(g.File, "workshop.yaml") + once, again
}

// in is the file of a rule, if it is known.
func (g *Gate) in() string {
	if g.File == "" {
		return ""
	}
	return " of " + g.File
}

// commandLine is the same call on a command line; empty where it is long, or can't be
// put between backquotes as it is.
func commandLine(c Call) string {
	line := "workshop call " + c.Worker + " " + shellquote.Quote(c.Tool) + " " + shellquote.Quote(string(c.Args))
	if len(line) > maxAgain || shown(line) != line || strings.Contains(line, "`") {
		return ""
	}
	return line
}

// rule0 is the rule of the file that decided, or none.
func (v *Verdict) rule0() workshop.ApprovalRule {
	if v.rule == nil {
		return workshop.ApprovalRule{}
	}
	return *v.rule
}
