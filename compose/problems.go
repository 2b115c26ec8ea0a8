package compose

import (
	"github.com/llmdo/workshop/diag"
)

// problems gathers errors. Workers inherit the workshop's mounts, so the same
// problem may be found once per worker; it is told once.
type problems diag.List

func (p *problems) add(code string, at diag.Range, summary, detail, hint string) {
	*p = append(*p, diag.Diagnostic{
		Severity: diag.Error, Code: code, Range: at, Summary: summary, Detail: detail, Hint: hint,
	})
}

// unique returns the list sorted, without repetitions.
func (p problems) unique() diag.List {
	type key struct {
		code, summary string
		at            diag.Range
	}
	seen := make(map[key]bool, len(p))
	var out diag.List
	for _, d := range diag.List(p).Sorted() {
		if k := (key{d.Code, d.Summary, d.Range}); !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return out
}
