package workshop

import (
	"bytes"
	"strings"
)

// What people write in the place of a list or a mapping, as the line that is
// meant: hints then show the user's own values.

// maxFlow is how much of the file a hint repeats, in bytes.
const maxFlow = 60

// listing is the field with the list of one item as its example, for text where a
// list is expected.
func (f *field) listing(src *source, n *node) *field {
	text, ok := src.flow(n)
	if f == nil || f.parent != "" || n.kind != scalarNode || n.tag != "!!str" || !ok || f.ofMappings() {
		return f
	}
	g := *f
	g.example = "write " + f.keyName + ": [" + text + "]"
	return &g
}

// ofMappings reports whether items of the list can't be text.
func (f *field) ofMappings() bool { return f.keyName == "secrets" || f.keyName == "rules" }

// assigning is the field with a mapping as its example, for a list of NAME=value
// where a mapping is expected.
func (f *field) assigning(src *source, n *node) *field {
	if f == nil || f.parent != "" || n.kind != listNode || len(n.items) == 0 {
		return f
	}
	var pairs []string
	for _, item := range n.items {
		name, value, ok := strings.Cut(item.text, "=")
		if item.kind != scalarNode || !ok || !envNameRE().MatchString(name) || !plainFlow(value) {
			return f
		}
		pairs = append(pairs, name+": "+value)
	}
	text := "{" + strings.Join(pairs, ", ") + "}"
	if len(text) > maxFlow {
		return f
	}
	g := *f
	g.example = "write " + f.keyName + ": " + text
	return &g
}

// flowList is a list of scalars and short mappings on one line, or an example.
func (d *decoder) flowList(n *node) string {
	var items []string
	size := 0
	for _, item := range n.items {
		text, ok := d.src.flow(item)
		if size += len(text); !ok || size > maxFlow {
			return "[api.github.com, {preset: npm}]"
		}
		items = append(items, text)
	}
	if len(items) == 0 {
		return "[]"
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// flow is a scalar or a mapping of scalars as a list in one line has it; false for
// what isn't short and plain.
func (s *source) flow(n *node) (string, bool) {
	switch n.kind {
	case scalarNode:
		if n.isNull() || n.inner < 0 || len(n.text) > maxFlow {
			return "", false
		}
		text := string(s.data[n.rng.Start.Byte:n.rng.End.Byte])
		return text, plainFlow(text) || text != n.text // quoted
	case mapNode:
		var pairs []string
		for _, p := range n.pairs {
			key, ok := s.flow(p.key)
			value, good := s.flow(p.value)
			if !ok || !good || len(pairs) > 2 {
				return "", false
			}
			pairs = append(pairs, key+": "+value)
		}
		return "{" + strings.Join(pairs, ", ") + "}", len(pairs) > 0
	}
	return "", false
}

// item is an item of a list as it is written in the place of another: with a
// dash where that has one, in braces where the list is in brackets.
func (s *source) item(n *node, pair string) string {
	from := s.lines[max(n.rng.Start.Line, 1)-1]
	if before := bytes.TrimSpace(s.data[from:n.rng.Start.Byte]); bytes.HasSuffix(before, []byte("-")) {
		return "`- " + pair + "`"
	}
	return "{" + pair + "}"
}

// plainFlow reports whether text needs no quotes within brackets.
func plainFlow(text string) bool {
	return text != "" && !strings.ContainsAny(text, ",[]{}#\"'\n\t&*!|>%@` ") && !strings.HasSuffix(text, ":")
}
