package app

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/engine"
)

// EventKind says what an event is.
type EventKind int

// The kinds of events.
const (
	// Notice is a line for whoever wants to know, Detail one for who wants to know
	// more.
	Notice EventKind = iota
	Detail
	// Warning is a line that nobody must miss.
	Warning
	// Hint says what to do about the one before.
	Hint
	// Problems are diagnostics of a file.
	Problems
	// StepsBegin, Step and StepsEnd are a plan that is carried out. Steps alone come
	// also where nobody reads them (Quiet): what they change may be a result.
	StepsBegin
	Step
	StepsEnd
)

// Event is what happens in a use case, for a person. It may come from any
// goroutine.
type Event struct {
	Kind EventKind
	Text string // of a Notice, Detail, Warning or Hint
	// Diagnostics and Sources are those of Problems: names as the user would write
	// them.
	Diagnostics diag.List
	Sources     map[string][]byte
	Step        engine.Event // of a Step
}

func (env *Env) event(e Event) {
	must := e.Kind == Warning || e.Kind == Hint || e.Kind == Step || e.Kind == Problems && e.Diagnostics.HasErrors()
	if env.Events == nil || env.Quiet && !must || !env.Verbose && e.Kind == Detail {
		return
	}
	env.Events(e)
}

func (env *Env) say(format string, args ...any) {
	env.event(Event{Kind: Notice, Text: fmt.Sprintf(format, args...)})
}

func (env *Env) detail(format string, args ...any) {
	env.event(Event{Kind: Detail, Text: fmt.Sprintf(format, args...)})
}

func (env *Env) warn(format string, args ...any) {
	env.event(Event{Kind: Warning, Text: fmt.Sprintf(format, args...)})
}

func (env *Env) hint(format string, args ...any) {
	env.event(Event{Kind: Hint, Text: fmt.Sprintf(format, args...)})
}

// Plain is an event as lines of text without colour; empty: nothing is to be seen.
func (e Event) Plain() string {
	switch e.Kind {
	case Notice:
		return e.Text + "\n"
	case Detail:
		return "workshop: " + e.Text + "\n"
	case Warning:
		return "workshop: warning: " + Indent(e.Text) + "\n"
	case Hint:
		return "workshop: hint: " + Indent(e.Text) + "\n"
	case Problems:
		var b strings.Builder
		_ = diagtext.Text(&b, e.Diagnostics, diagtext.TextOptions{Sources: e.Sources})
		return b.String()
	case Step:
		return StepText(e.Step)
	}
	return ""
}
