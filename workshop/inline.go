package workshop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop/worker"
)

// textList is a list of texts, or one text, of an inline worker.
type textList []worker.Text

func (l *textList) decode(d *decoder, n *node, f *field) bool {
	items := []*node{n}
	item := f
	switch {
	case n.kind == listNode && len(n.items) <= maxItems:
		items, item = n.items, f.item()
	case n.kind == listNode:
		d.fail(n.rng, "too-large", fmt.Sprintf("%s has %d items, more than %d", f.name(), len(n.items), maxItems), "")
		return false
	case n.kind != scalarNode || n.isNull():
		d.wrongType(n, f, "a list of names")
		return false
	}
	*l = textList{}
	good := true
	for _, x := range items {
		var v Value[string]
		if !v.decode(d, x, item) {
			good = false
			continue
		}
		*l = append(*l, worker.Text{Value: v.V, At: d.literalRange(x, v.V)})
	}
	return good
}

// literalRange is the place of a scalar's text, without its quotes.
func (d *decoder) literalRange(n *node, text string) diag.Range {
	if n.inner < 0 || n.text != text {
		return n.rng
	}
	return d.src.span(n.inner, n.inner+len(text))
}

func (*textList) schema(*schemaMaker) object {
	text := object{"type": "string", "maxLength": maxScalar}
	return object{"anyOf": []object{text, {"type": "array", "items": text, "maxItems": maxItems}}}
}

// inlineRules adds to the schema of an item that what it does is said in one place, and
// never without tools.
func inlineRules(form object) {
	both := func(a, b string) object { return object{"not": object{"required": []string{a, b}}} }
	all := []object{both("file", "tools"), both("file", "allowed-tools"), both("tools", "allowed-tools")}
	needed := object{}
	for _, key := range definitionKeys[2:] {
		needed[key] = object{"anyOf": []object{{"required": []string{"tools"}}, {"required": []string{"allowed-tools"}}}}
	}
	form["allOf"], form["dependentSchemas"] = all, needed
}

// definitionKeys are the keys of an item that say what a worker does.
var definitionKeys = []string{"tools", "allowed-tools", "description", "instructions", "delegates-to", "model", "result_type"}

// inline is what the item n says of what the worker does; nil when that is in a file.
// failed: the item has an error already, and a key may be missing by that.
func (f *workerForm) inline(d *decoder, n *node, failed bool) *worker.Inline {
	given := map[string]diag.Range{}
	var keys []string
	for _, p := range n.pairs {
		if slices.Contains(definitionKeys, p.key.text) && given[p.key.text].Filename == "" {
			given[p.key.text], keys = p.key.rng, append(keys, p.key.text)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	name := f.Name.V
	out := &worker.Inline{Name: name, Source: f.Name.Source}
	tools, here := given["tools"]
	allowed, there := given["allowed-tools"]
	switch {
	case f.File != nil:
		d.report(diag.Diagnostic{Severity: diag.Error, Code: "worker-two-definitions", Range: given[keys[0]],
			Summary: fmt.Sprintf("the worker %s is defined here by %s, and in a file", name, strings.Join(keys, ", ")),
			Hint:    "keep one of them: remove `file`, or write what the worker does in its file",
			Related: []diag.Related{{Message: "the file is named here", Range: f.File.Source.Range}}})
	case here && there:
		d.report(diag.Diagnostic{Severity: diag.Error, Code: "worker-two-tool-lists", Range: allowed,
			Summary: "tools and allowed-tools are both the limit of the worker's tools", Hint: "keep one of them",
			Related: []diag.Related{{Message: "the other list", Range: tools}}})
	case !here && !there && !failed:
		d.fail(given[keys[0]], "missing-key", fmt.Sprintf("the worker %s has %s, but no tools", name, strings.Join(keys, ", ")),
			"add tools: [read_file, shell] to define the worker here (tools: [] if none is meant), or write "+keys[0]+" in the worker's file")
	}
	switch {
	case f.Tools != nil:
		out.Tools, out.ToolsKey = *f.Tools, "tools"
	case f.AllowedTools != nil:
		out.Tools, out.ToolsKey = *f.AllowedTools, "allowed-tools"
	}
	if f.DelegatesTo != nil && out.ToolsKey != "" {
		out.DelegatesTo = *f.DelegatesTo
	}
	text := func(to *string, from *Value[string]) {
		if from == nil {
			return
		}
		if *to = from.V; d.symbols != nil {
			*to = cmp.Or(from.Source.Template, from.V)
		}
	}
	text(&out.Description, f.Description)
	text(&out.Instructions, f.Instructions)
	text(&out.Model, f.Model)
	if f.ResultType != nil {
		out.ResultFile = worker.Reference{Name: f.ResultType.V, Source: f.ResultType.Source}
	}
	return out
}

// inline returns the definition of a worker that has none elsewhere, and workshop.yaml
// as its file.
func (l *locator) inline(e workerEntry) (string, worker.Definition) {
	if found, _ := l.candidates(e.Name.V); e.File.V == "" && len(found) > 0 {
		names, detail := l.foundText(found)
		l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-ambiguous", Range: e.Name.Source.Range,
			Summary: fmt.Sprintf("the worker %s is defined here and in %s", e.Name.V, strings.Join(names, " and ")), Detail: detail,
			Hint: fmt.Sprintf("keep one of them: write `- %s` to use the file, or give the worker here another name", e.Name.V)})
	}
	def, diags := e.Inline.Definition()
	l.problems.add(diags...)
	if !diags.HasErrors() {
		l.resultType(&def, l.file)
	}
	return l.file, def
}
