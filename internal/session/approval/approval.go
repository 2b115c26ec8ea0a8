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
// lets pass what only reads inside the worker, and asks for the rest.
type Policy struct {
	// Rules are the file's; package callrule says what they are about.
	Rules []workshop.ApprovalRule
	// Default is the file's, where Given reports that it has one. Without, what
	// only reads inside the worker (tool.Spec.ReadOnly and not OpenWorld) is auto
	// and the rest ask.
	Default workshop.Approval
	Given   bool
	// Max is the most that a file may grant by itself: the user's setting
	// `approvals_max`, ask where it isn't set. What is auto without any file, and
	// what the user accepted (Accepted), is auto anyway. deny denies
	// everything.
	Max workshop.Approval
	// Accepted are rules that this user said `always` to, for this file. They
	// only count while the file has them.
	Accepted []Rule
	// ApproveAll turns ask into auto (--approve-all), Strict turns it into deny
	// (--strict) and wins over ApproveAll. deny stays deny.
	ApproveAll, Strict bool
	// Workdirs are the workers' working directories by name, which relative
	// paths of calls and rules are relative to.
	Workdirs map[string]string
	// Obeyed reports whether programs of the host run or obey a file that a worker
	// writes, by its absolute path there; nil: none.
	Obeyed func(worker, path string) bool
}

// Rule is a rule as it is kept and shown.
type Rule struct {
	Tool  string `json:"tool"`
	Match string `json:"match,omitempty"`
}

// Verdict is a decision and why.
type Verdict struct {
	Decision workshop.Approval
	// Answer is a person's, where the decision was ask and one was asked, now or
	// before.
	Answer Answer
	// Why names the rule with its place, or the default, the cap, the flag.
	Why string

	rule   *workshop.ApprovalRule // of the file, that decided
	capped bool                   // the file says auto, the user doesn't
	unsure bool                   // the call may be what a rule is about
	obeyed bool                   // the call writes what programs of the host run or obey
}

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
	// Text is the call for a person: lines of text in which nothing is invisible
	// or moves a terminal's cursor. What is long is shortened in the middle and
	// says so.
	Text string
	// Rule is what session and always would allow; they are only offered where it
	// isn't nil (a line with shell operators has none).
	Rule *Rule
	// Change shows what always would write, as lines of the file; empty where
	// always isn't offered.
	Change string
	// OneCall says that the session is this call: it isn't offered.
	OneCall bool
}

// Answers lists what may be answered.
func (q *Question) Answers() []Answer {
	list := []Answer{No, Once}
	if q.Rule != nil {
		if !q.OneCall {
			list = append(list, Session)
		}
		if q.Change != "" {
			list = append(list, Always)
		}
	}
	return list
}

// Asker asks a person. An error refuses the call, and so does an answer that
// isn't one of [Question.Answers].
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Remember keeps rules for ever.
type Remember interface {
	// Preview tells what Write would change, as text for a person; never empty
	// without an error. before is the rule of the file that asks for calls that r
	// is about, which r must precede; nil: none does.
	Preview(ctx context.Context, r Rule, before *workshop.ApprovalRule) (string, error)
	// Write writes the rule down. An error means that nothing was written.
	Write(ctx context.Context, r Rule, before *workshop.ApprovalRule) error
}
