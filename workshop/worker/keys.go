package worker

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// field is one key of a worker file with its value.
type field struct {
	key, value *yaml.Node // nil for an inline worker's
	texts      []Text     // of an inline worker's list
	name       string
	used       bool // a dialect has read it
}

// file is a worker file while it is being read.
type file struct {
	*text
	dialect Dialect
	schemas *Schemas
	hasKeys bool // the file has a place for keys: front matter, or it is all keys
	// first is the line of the file on which the YAML begins, from 0.
	first  int
	fields []*field
	def    Definition
	diags  diag.List
	// count and untold are those reported and those left out, by severity.
	count, untold [diag.Warning + 1]int
}

func (f *file) report(s diag.Severity, code string, at diag.Range, hint, format string, args ...any) {
	f.tell(diag.Diagnostic{Severity: s, Code: code, Summary: fmt.Sprintf(format, args...), Hint: hint, Range: at})
}

// tell adds a diagnostic, up to the limit of its severity.
func (f *file) tell(d diag.Diagnostic) {
	if f.count[d.Severity]++; f.count[d.Severity] > maxReports {
		f.untold[d.Severity]++
		return
	}
	f.diags = append(f.diags, d)
}

// told returns all diagnostics in order of position.
func (f *file) told() diag.List {
	out := f.diags.Sorted()
	for _, s := range []diag.Severity{diag.Error, diag.Warning} {
		if n := f.untold[s]; n > 0 {
			out = append(out, diag.Diagnostic{Severity: s, Code: "too-many-problems", Summary: fmt.Sprintf("%d more %ss in this file", n, s), Range: diag.Range{Filename: f.path}})
		}
	}
	return out
}

// readKeys parses the YAML of a file into fields. Duplicate keys are errors:
// which of them counts would be a guess.
func (f *file) readKeys(from, to int) {
	if c, bad := yamltext.Check(f.data[:to], from); bad {
		f.report(diag.Error, "worker-not-text", f.span(c.At, c.At+c.Len), c.Hint, "%s", c.Summary)
		return
	}
	f.first = f.pos(from).Line - 1
	doc, second, err := decode(f.data[from:to])
	if err != nil {
		if text, line, ok := f.proseQuoted(f.data[from:to]); ok {
			if again, more, errAgain := decode(text); errAgain == nil {
				doc, second, err = again, more, nil
				at := f.offset(line+f.first, 1)
				f.report(diag.Warning, "worker-yaml", f.span(at, f.lineEnd(at)), "put quotes around it", "the description has a colon and is not valid YAML; it is read as text")
			}
		}
	}
	if second != nil {
		f.report(diag.Error, "worker-yaml", f.rangeOf(second), "remove the line that ends the document (... or ---)", "a second YAML document inside the keys")
		return
	}
	if err != nil {
		f.badYAML(err, from, to)
		return
	}
	if doc == nil {
		return
	}
	root := doc
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) == 0 {
			return
		}
		root = doc.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		f.report(diag.Error, "worker-yaml", f.rangeOf(root), "write one key per line, such as `name: "+nameOf(f.path, f.dialect)+"`", "the keys must be a mapping, found %s", kindName(root))
		return
	}
	seen := map[string]*field{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			f.report(diag.Error, "worker-yaml", f.rangeOf(k), "", "a key must be a word, found %s", kindName(k))
			continue
		}
		if before := seen[k.Value]; before != nil {
			f.tell(diag.Diagnostic{Severity: diag.Error, Code: "worker-duplicate-key",
				Summary: fmt.Sprintf("the key %q is given twice", shorten(k.Value)), Hint: "keep one of them", Range: f.rangeOf(k),
				Related: []diag.Related{{Message: "first here", Range: f.rangeOf(before.key)}}})
			continue
		}
		seen[k.Value] = &field{key: k, value: v, name: k.Value}
		f.fields = append(f.fields, seen[k.Value])
	}
}

// take returns the field of the first of the names that is in the file and
// marks it as read; nil when there is none.
func (f *file) take(name string) *field {
	for _, fd := range f.fields {
		if fd.name == name {
			fd.used = true
			return fd
		}
	}
	return nil
}

// str reads a key with one scalar; an absent key is empty.
func (f *file) str(name string) (string, diag.Range) {
	fd := f.take(name)
	if fd == nil {
		return "", diag.Range{}
	}
	v := resolve(fd.value)
	if v.Kind != yaml.ScalarNode {
		f.report(diag.Error, "worker-type", f.rangeOf(fd.value), "write `"+name+": text`", "%s must be text, found %s", name, kindName(v))
		return "", diag.Range{}
	}
	if v.ShortTag() == "!!null" {
		return "", f.rangeOf(fd.value)
	}
	return v.Value, f.rangeOf(fd.value)
}

// resolve follows an alias. An anchor may name a value that holds the
// alias itself, so nothing may walk on below without a bound of its own.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// start returns the byte at which a node begins.
func (f *file) start(n *yaml.Node) int { return f.offset(n.Line+f.first, n.Column) }

// rangeOf returns the place of a node: the scalar itself where it is written on
// one line, else the rest of its first line.
func (f *file) rangeOf(n *yaml.Node) diag.Range {
	from := f.start(n)
	end := f.lineEnd(from)
	if n.Kind == yaml.ScalarNode && len(n.Value) > 0 && len(n.Value) <= end-from {
		q := 0
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			q = 1
		}
		if to := from + 2*q + len(n.Value); to <= end && string(f.data[from+q:from+q+len(n.Value)]) == n.Value {
			end = to
		}
	}
	return f.span(from, end)
}

// keyRange returns the place of a field's key; an inline worker's has that of its list.
func (f *file) keyRange(fd *field) diag.Range {
	switch {
	case fd.key != nil:
		return f.rangeOf(fd.key)
	case len(fd.texts) > 0:
		return fd.texts[0].At
	}
	return f.def.Source.Range
}

// inside returns the places of parts of a scalar's value, where the file has the
// value letter by letter; else that of the scalar.
func (f *file) inside(n *yaml.Node) func(from, to int) diag.Range {
	at := f.start(n)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		at++
	}
	if at+len(n.Value) <= len(f.data) && string(f.data[at:at+len(n.Value)]) == n.Value {
		return func(from, to int) diag.Range { return f.span(at+from, at+to) }
	}
	whole := f.rangeOf(n)
	return func(int, int) diag.Range { return whole }
}

// keep puts a field into Extra as YAML text.
func (f *file) keep(fd *field) {
	if f.def.Extra == nil {
		f.def.Extra = map[string]string{}
	}
	f.def.Extra[fd.name] = f.source(fd)
}

// source is a field's value as YAML text: marshalled where it is
// complete, else (with aliases, whose anchors are elsewhere) letter by letter.
func (f *file) source(fd *field) string {
	if fd.value == nil {
		return textOf(fd.texts)
	}
	if budget := maxNodes; !hasAlias(fd.value, &budget) {
		if out, err := yaml.Marshal(fd.value); err == nil {
			return string(out)
		}
	}
	from, to := f.start(fd.value), len(f.data)
	if i := slices.Index(f.fields, fd); i+1 < len(f.fields) {
		to = f.start(f.fields[i+1].key)
	}
	return string(bytes.TrimSpace(f.data[from:max(from, min(to, from+maxFrontMatter))])) + "\n"
}

const maxNodes = 20_000

func hasAlias(n *yaml.Node, budget *int) bool {
	if *budget--; *budget < 0 || n.Kind == yaml.AliasNode {
		return true
	}
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return hasAlias(c, budget) })
}
