package workshop

import (
	"reflect"
	"strings"
)

// workerLines are the workers that a mapping of names stands for.
func (s *source) workerLines(n *node) []string {
	var out []string
	for _, item := range n.items {
		if item.kind == mapNode && len(item.pairs) == 1 && item.pairs[0].value.kind != scalarNode {
			out = append(out, s.workerLines(item)...)
		} else if text, ok := s.flow(item); ok {
			out = append(out, text)
		}
	}
	for _, p := range n.pairs {
		out = append(out, s.workerLine(p))
	}
	if n.kind == scalarNode && !n.isNull() {
		for name := range strings.FieldsFuncSeq(n.text, func(r rune) bool { return r == ',' || r == ' ' }) {
			out = append(out, quoteFlow(name))
		}
	}
	return out
}

// workerLine is one worker of a mapping: with its keys if they are those of a worker
// or of its container, else its name alone.
func (s *source) workerLine(p pair) string {
	name := quoteFlow(p.key.text)
	own, container := []string{"name: " + name}, []string(nil)
	for _, q := range p.value.pairs {
		text, ok := s.flow(q.value)
		pair := q.key.text + ": " + text
		switch {
		case ok && formOf(reflect.TypeFor[workerForm]()).byKey[q.key.text] != nil:
			own = append(own, pair)
		case ok && formOf(reflect.TypeFor[partialContainer]()).byKey[q.key.text] != nil:
			container = append(container, pair)
		default:
			return name
		}
	}
	if len(container) > 0 {
		own = append(own, "container: "+inBraces(container))
	}
	if len(own) == 1 {
		return name
	}
	return inBraces(own)
}

// workerNames are the workers of a mapping by their names alone, or "".
func (s *source) workerNames(n *node, t reflect.Type) string {
	if t != reflect.TypeFor[*[]workerEntry]() {
		return ""
	}
	var names []string
	for _, p := range n.pairs {
		names = append(names, quoteFlow(p.key.text))
	}
	return inBrackets(names)
}
