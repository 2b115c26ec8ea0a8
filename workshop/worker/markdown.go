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
	f.rest(nil, "name", "description", "allowed-tools", "disallowed-tools", "delegates-to", "model", "result_type", "output_schema_ref")
}

// oneList reads the tool list that stands under one of the names. Under two
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
