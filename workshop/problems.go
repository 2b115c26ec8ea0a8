package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/internal/diag"
)

// problems collects diagnostics up to a limit: a broken generator must not
// make a report of megabytes.
type problems struct {
	list   diag.List
	errors int
	more   int
}

func (p *problems) add(ds ...diag.Diagnostic) {
	for _, d := range ds {
		if d.Severity == diag.Error {
			p.errors++
		}
		if len(p.list) >= maxProblems {
			p.more++
			continue
		}
		p.list = append(p.list, d)
	}
}

// done returns all of them in order of position.
func (p *problems) done(file string) diag.List {
	out := p.list.Sorted()
	if p.more > 0 {
		out = append(out, diag.Diagnostic{
			Severity: diag.Error, Code: "too-many-problems", Range: diag.Range{Filename: file},
			Summary: fmt.Sprintf("%d more problems are not shown", p.more),
		})
	}
	return out
}
