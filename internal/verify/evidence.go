package verify

import (
	"fmt"
	"slices"
	"strings"
)

// evidence gathers what decides about one line.
type evidence struct {
	promise, worker                         string
	triedTexts, insides, outsides, controls []string
	broken                                  []string // what breaks the promise
	failed                                  []string // controls that did
	missing                                 []string // what had to be seen, and couldn't
	copied                                  bool     // it was seen in a copy
}

func about(promise, worker string) *evidence { return &evidence{promise: promise, worker: worker} }

// inCopy is about for what was done to a copy of the project.
func inCopy(promise, worker string) *evidence {
	return &evidence{promise: promise, worker: worker, copied: true}
}

func (e *evidence) tried(format string, args ...any) {
	e.triedTexts = append(e.triedTexts, fmt.Sprintf(format, args...))
}

// inside records what a probe saw; not ok: it breaks the promise.
func (e *evidence) inside(ok bool, format string, args ...any) {
	e.add(&e.insides, ok, format, args...)
}

// outside records what was seen outside; not ok: it breaks the promise.
func (e *evidence) outside(ok bool, format string, args ...any) {
	e.add(&e.outsides, ok, format, args...)
}

func (e *evidence) add(to *[]string, ok bool, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	*to = append(*to, s)
	if !ok {
		e.broken = append(e.broken, s)
	}
}

// control records what shows that the test can tell; not ok: it can't.
func (e *evidence) control(ok bool, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	e.controls = append(e.controls, s)
	if !ok {
		e.failed = append(e.failed, s)
	}
}

// miss records why something could not be seen that the verdict needs.
func (e *evidence) miss(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(e.missing, s) {
		e.missing = append(e.missing, s)
	}
}

// line judges. What breaks a promise does so whatever a control says. Without a control
// that passed, nothing is held.
func (e *evidence) line() Line {
	l := Line{
		Promise: e.promise, Title: titleOf(e.promise), Worker: e.worker, Copy: e.copied,
		Tried: text(e.triedTexts), Inside: text(e.insides), Outside: text(e.outsides), Control: text(e.controls),
	}
	switch {
	case len(e.broken) > 0:
		l.Verdict, l.Why = Broken, text(e.broken)
	case len(e.failed) > 0:
		l.Verdict, l.Why = NotTested, text([]string{"the control failed: " + strings.Join(e.failed, "; ")})
	case len(e.missing) > 0: // the first is why the others are missing
		l.Verdict, l.Why = NotTested, text(e.missing[:1])
	case len(e.insides)+len(e.outsides) == 0:
		l.Verdict, l.Why = NotTested, "nothing was seen"
	case len(e.controls) == 0:
		l.Verdict, l.Why = NotTested, "it has no control"
	default:
		l.Verdict = Held
	}
	return l
}

// Why a line whose promise can only be looked at in part is not held.
const (
	disruptiveHere = "disruptive: `--disruptive` tests it in a copy of the project"
	elsewhere      = "by the project's own tests"
)

// part is line for what doesn't show the promise as a whole: it can break it, but
// doesn't hold it.
func (e *evidence) part(why string) Line {
	l := e.line()
	if l.Verdict != Broken && len(e.failed)+len(e.missing) == 0 {
		l.Verdict, l.Why = NotTested, why
	}
	return l
}

// notTested is a line without a test.
func notTested(promise, worker, why string) Line {
	return Line{Promise: promise, Title: titleOf(promise), Worker: worker, Verdict: NotTested, Why: text([]string{why})}
}
