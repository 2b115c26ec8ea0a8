// Package diag is the one form in which problems of a user's files are told.
//
// Packages that read files return a [List]; package internal/diagtext renders
// it for a terminal, as JSON, as SARIF or as GitHub annotations. A Diagnostic
// never formats itself for a terminal: width, colour and sources belong to the
// writer. The writers are apart because workshop-init links this package and
// prints none.
//
// This API is v0: it may change until v1.
package diag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Severity reports whether a problem stops the run. The zero value is invalid.
type Severity int

// The severities, most severe first.
const (
	Error   Severity = iota + 1 // the workshop is refused
	Warning                     // reported; fails only with --strict
)

// String returns "error" or "warning".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "invalid"
}

// Pos is a place in a file. Line and Column count from 1 (columns in
// characters), Byte from 0. The zero Pos means that no place is known.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Range is the part of a file that a diagnostic is about; End is the first
// place after it. A zero Range names no file; one without Start.Line names
// the file as a whole.
type Range struct {
	Filename string `json:"filename"`
	Start    Pos    `json:"start"`
	End      Pos    `json:"end"`
}

// String returns "file:line:col", or as much of it as is known.
func (r Range) String() string {
	if r.Start.Line == 0 {
		return r.Filename
	}
	return r.Filename + ":" + strconv.Itoa(r.Start.Line) + ":" + strconv.Itoa(r.Start.Column)
}

// Source says where a value of a compiled or effective configuration was
// written. The zero Source means that nobody wrote it: it is a default.
type Source struct {
	Range Range
	// Template is the scalar as it must be rendered so that no value of a
	// variable reaches a generated file: `${NAME:?}`, or `${NAME:-default}`
	// where the file gives a default, with the literal text around it (`$`
	// in literal text is `$$`). Empty when the scalar has no variable.
	Template string
}

// Related is a second place that a diagnostic refers to, such as the line that
// a worker's line widens.
type Related struct {
	Message string
	Range   Range
}

// Diagnostic is one problem and what to do about it.
type Diagnostic struct {
	Severity Severity
	// Code is a stable identifier in kebab-case, such as "unknown-key".
	Code string
	// Summary says in one line what is wrong: lower case, no final period.
	Summary string
	// Detail explains in whole sentences; may be empty.
	Detail string
	// Hint says what to do, with a line or a command to paste; may be empty.
	Hint    string
	Range   Range
	Related []Related
}

// Error returns the diagnostic as one plain line.
func (d Diagnostic) Error() string {
	var b strings.Builder
	if at := d.Range.String(); at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(d.Severity.String() + ": " + d.Summary)
	return b.String()
}

// List is a number of diagnostics; as an error it is all of them, a line each.
type List []Diagnostic

// Error returns all diagnostics, one plain line each.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// HasErrors reports whether at least one diagnostic is an [Error].
func (l List) HasErrors() bool { return l.Count(Error) > 0 }

// Count returns the number of diagnostics of the given severity.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Sorted returns a copy in order of file, position, severity and code.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Range.Filename, b.Range.Filename),
			cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
			cmp.Compare(a.Range.Start.Column, b.Range.Start.Column),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Code, b.Code),
		)
	})
	return out
}

// Literal writes text as a [Source.Template]: Compose replaces $$ by $
// (the Compose Specification, "Interpolation").
func Literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }
