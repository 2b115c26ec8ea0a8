package worker

import (
	"github.com/llmdo/workshop/diag"
)

// delegates reads a list of workers' names.
func (f *file) delegates(fd *field) {
	entries, ok := f.list(fd, maxDelegates)
	if !ok {
		return
	}
	for _, e := range entries {
		if e.limited || !ValidName(e.name) {
			f.report(diag.Error, "worker-name", e.at, "a worker's name: "+nameRule, "%q can't be the name of a worker", shorten(e.text))
			continue
		}
		f.delegateTo(e.name, e.at)
	}
}

func (f *file) delegateTo(name string, at diag.Range) {
	for _, d := range f.def.DelegatesTo {
		if d.Name == name {
			f.tell(diag.Diagnostic{Severity: diag.Warning, Code: "worker-duplicate-delegate",
				Summary: "the worker " + name + " is named twice", Hint: "keep one of them", Range: at,
				Related: []diag.Related{{Message: "first here", Range: d.Source.Range}}})
			return
		}
	}
	f.def.DelegatesTo = append(f.def.DelegatesTo, Reference{Name: name, Source: diag.Source{Range: at}})
}
