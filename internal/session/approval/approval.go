// Package approval decides which tool calls need a person's yes, and asks for
// it. Deciding is pure ([Policy.Decide]); asking is an [Asker]'s. With nobody
// to ask, a call that needs a yes is refused (B42).
package approval

import (
	"context"
	"encoding/json"

	"github.com/llmdo/workshop/workshop"
)

// Call is what is decided on.
type Call struct {
	Worker string
	// Tool is the tool's own name: shell, mcp__SERVER__TOOL, delegate_WORKER.
	Tool string
	Args json.RawMessage
	// Chain are the workers that delegated, the first caller first; without
	// Worker.
	Chain []string
}

// Policy is what a workshop says, capped by what its user says. The zero value
// asks for everything.
type Policy struct {
	// Default and Rules are the file's. Given tells whether the file has an
	// `approvals:`; without, what only reads inside the worker (tool.Spec.ReadOnly
	// and not OpenWorld) is auto and the rest ask.
	Default workshop.Approval
	Rules   []workshop.ApprovalRule
	Given   bool
	// Max is the most that a file may grant by itself: the user's setting
	// `approvals_max`, ask where it isn't set. What is accepted by the user
	// (Accepted) counts as auto all the same.
	Max workshop.Approval
	// Accepted are rules that this user said `always` to, for this file.
	Accepted []Rule
	// ApproveAll turns ask into auto (--approve-all), Strict turns it into deny
	// (--strict). deny stays deny.
	ApproveAll, Strict bool
}

// Rule is a rule as it is kept and shown.
type Rule struct {
	Tool  string `json:"tool"`
	Match string `json:"match,omitempty"`
}

// Verdict is a decision and why.
type Verdict struct {
	Decision workshop.Approval
	// Why names the rule with its place, or the default, the cap, the flag.
	Why string
}

// Decide is pure. Of the rules, the first that matches decides.
func (p *Policy) Decide(c Call) Verdict { panic("not built") }

// Answer is a person's.
type Answer string

// The answers.
const (
	No      Answer = "no"
	Once    Answer = "once"
	Session Answer = "session" // the same rule until the Host closes
	Always  Answer = "always"  // the rule goes into the file
)

// Question is put to a person.
type Question struct {
	Call Call
	Why  string
	// Text is the call for a person, all of it, control characters made visible.
	Text string
	// Rule is what session and always would allow; they are only offered where it
	// isn't nil (a line with shell operators has none).
	Rule *Rule
	// Change shows what always would write, as a diff of the file; empty where
	// there is nothing to write.
	Change string
}

// Asker asks a person. An error refuses the call.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Gate joins policy, asker and what was answered. It is safe for use by
// several goroutines; questions are asked one after the other.
type Gate struct {
	Policy Policy
	Asker  Asker // nil: nobody to ask
	// Remember writes a rule down for always; nil: always isn't offered.
	Remember Remember
	// unexported: session answers
}

// Remember keeps rules for ever.
type Remember interface {
	// Preview gives the diff that Write would make.
	Preview(r Rule) (string, error)
	Write(r Rule) error
}

// Allow returns nil with the verdict where the call may run, else a
// [RefusedError].
func (g *Gate) Allow(ctx context.Context, c Call) (Verdict, error) { panic("not built") }

// RefusedError says why a call may not run (B42), and what to do.
type RefusedError struct {
	Call Call
	Why  string
	Hint string
}

func (e *RefusedError) Error() string { panic("not built") }
