package diff

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/diagtext"
)

// nothing is the word for a value that isn't there.
const nothing = "nothing"

// who are the workers of a row, in words.
func (r *Row) who() string {
	switch n := len(r.Workers); {
	case n == 0:
		return ""
	case n <= 3:
		return strings.Join(r.Workers, ", ")
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(r.Workers[:2], ", "), n-2)
	}
}

// what is what changed, in words.
func (r *Row) what() string {
	before, after := r.Before, r.After
	if before == "" {
		before = nothing
	}
	if after == "" {
		after = nothing
	}
	return before + " -> " + after
}

// Summary is a row without its state and places, on one line, safe for a terminal.
func (r *Row) Summary() string {
	text := r.Surface + ": " + r.what()
	if who := r.who(); who != "" {
		text = who + ": " + text
	}
	return line(text)
}

// line is text on one line.
func line(text string) string {
	return diagtext.Printable(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}

// Places are where a row is caused: in head, and in base where that is another place.
func (r *Row) Places() string {
	at, was := place(r.At), place(r.Was)
	switch {
	case was == "" || was == at || r.Before == "":
		return diagtext.Printable(at)
	case at == "":
		return diagtext.Printable("was " + was)
	case r.At.Filename == r.Was.Filename && r.Was.Start.Line > 0:
		return diagtext.Printable(fmt.Sprintf("%s, was line %d", at, r.Was.Start.Line))
	}
	return diagtext.Printable(at + ", was " + was)
}

func place(r diag.Range) string {
	if r.Start.Line == 0 {
		return r.Filename
	}
	return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line)
}

// Counts says how many rows there are of each state: "2 widened, 1 changed".
func Counts(rows []Row) string {
	var parts []string
	for _, s := range States() {
		if n := Count(rows, s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "no differences"
	}
	return strings.Join(parts, ", ")
}

// Diagnostics are rows as problems, for annotations: those of the states that fail are
// errors.
func Diagnostics(rows []Row, fail []State) diag.List {
	var out diag.List
	for i := range rows {
		r := &rows[i]
		d := diag.Diagnostic{Severity: diag.Warning, Code: string(r.State), Summary: r.Summary(), Range: r.At}
		for _, s := range fail {
			if s == r.State {
				d.Severity = diag.Error
			}
		}
		if r.Was.Filename != "" && r.Before != "" && r.Was != r.At {
			d.Related = []diag.Related{{Message: "before", Range: r.Was}}
		}
		out = append(out, d)
	}
	return out
}

// Markdown is a table of rows for a comment on a pull request. What the files say is in
// code spans: nobody is mentioned by it, and nothing is a link.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| | workers | what | before | after | where |\n|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		state := string(r.State)
		if r.State == Widened || r.State == Unknown {
			state = "**" + state + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", state, span(r.who()), span(r.Surface), span(r.Before), span(r.After), span(r.Places()))
	}
	return b.String()
}

// span is text as a code span of a table.
func span(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(line(text)) + "`"
}
