package workshop

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/diag"
)

// problems collects diagnostics up to a limit: a broken generator must not
// make a report of megabytes. What an alias repeats is reported once.
type problems struct {
	list   diag.List
	errors int
	more   int // problems that are not in the list
}

func (p *problems) add(ds ...diag.Diagnostic) {
	for _, d := range ds {
		if d.Severity == diag.Error {
			p.errors++
		}
		if p.reported(d) {
			continue
		}
		if len(p.list) < maxProblems {
			p.list = append(p.list, withoutTokens(d))
			continue
		}
		p.more++
		// Errors come before warnings.
		if at := slices.IndexFunc(p.list, isWarning); at >= 0 && d.Severity == diag.Error {
			p.list = append(slices.Delete(p.list, at, at+1), withoutTokens(d))
		}
	}
}

// reported reports whether the same is said of the same place already.
func (p *problems) reported(d diag.Diagnostic) bool {
	if d.Range.Start.Line == 0 {
		return false
	}
	return slices.ContainsFunc(p.list, func(x diag.Diagnostic) bool {
		return x.Code == d.Code && x.Range == d.Range && x.Severity == d.Severity && x.Summary == d.Summary
	})
}

func isWarning(d diag.Diagnostic) bool { return d.Severity == diag.Warning }

// done returns all of them in order of position.
func (p *problems) done(file string) diag.List {
	out := p.list.Sorted()
	if p.more > 0 {
		severity := diag.Warning
		if p.errors > 0 {
			severity = diag.Error
		}
		out = append(out, diag.Diagnostic{
			Severity: severity, Code: "too-many-problems", Range: diag.Range{Filename: file},
			Summary: fmt.Sprintf("%d more problems are not shown", p.more),
		})
	}
	return out
}
