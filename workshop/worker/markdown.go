package worker

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
)

// markdown reads our own form: workers/NAME.md.
func (f *file) markdown() {
	f.common()
	f.oneList("allowed-tools", "tools", "toolsets")
	for _, key := range []string{"disallowed-tools", "disallowedTools"} {
		if fd := f.take(key); fd != nil {
			f.withdraw(fd)
		}
	}
	if fd := f.take("delegates-to"); fd != nil {
		f.delegates(fd)
	}
	f.resultType(false)
	names := make([]string, len(markdownKeys))
	for i, k := range markdownKeys {
		names[i] = k.name
	}
	f.rest(nil, names...)
}

// markdownKeys are the keys of our own form, with what docs/reference.md says of
// them.
var markdownKeys = []struct{ name, kind, absent, doc, example string }{
	{"name", "text", "the file's name", "Name of the worker, as workshop.yaml lists it.", "name: reviewer"},
	{"description", "text", "", "What the worker is for; clients see it.", "description: Reviews a change"},
	{"allowed-tools", "list of tools, or text with commas", "no tools", "Limit of what the worker is offered. `tools` and `toolsets` are other names of this key.", "allowed-tools: Read, Grep, Bash(git:*)"},
	{"disallowed-tools", "list of tools, or text with commas", "", "Tools that are removed from the list.", "disallowed-tools: Bash"},
	{"delegates-to", "list of workers", "no workers", "Workers of the same workshop that this one may call; each may reach no more than its caller.", "delegates-to: [scanner]"},
	{"model", "text", "", "Kept for the program that calls the model; the workshop doesn't use it.", "model: large"},
	{"result_type", "JSON Schema, or path of a .json file", "no check", "What an answer must look like: `workshop check-result`.", "result_type: schemas/report.json"},
	{"output_schema_ref", "path of a .json file", "no check", "Another name of `result_type`.", "output_schema_ref: schemas/report.json"},
}

// oneList reads the tool list under one of the names. Under two
// of them it is an error: which one is the limit would be a guess.
func (f *file) oneList(names ...string) {
	var given []*field
	for _, name := range names {
		if fd := f.take(name); fd != nil {
			given = append(given, fd)
		}
	}
	switch {
	case len(given) == 0:
		f.noList(names[0], "")
	case len(given) > 1:
		f.tell(diag.Diagnostic{Severity: diag.Error, Code: "worker-two-tool-lists",
			Summary: fmt.Sprintf("%s and %s are both the limit of the worker's tools", given[0].name, given[1].name),
			Hint:    "keep one of them", Range: f.rangeOf(given[1].key),
			Related: []diag.Related{{Message: "the other list", Range: f.rangeOf(given[0].key)}}})
	case given[0].name == "toolsets":
		f.toolsets(given[0])
	default:
		f.offer(given[0])
	}
}
