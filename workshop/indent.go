package workshop

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// maxMoved is the number of lines that a hint about indentation repeats.
const maxMoved = 12

// indented returns the mapping as it was meant where keys are in the column of
// the key that they belong below, and reports that once: what is in them is then
// checked as if they were indented.
func (d *decoder) indented(n *node, f *form) *node {
	if n.rng.Start.Line == n.rng.End.Line {
		return n
	}
	n = d.withParent(n, f)
	for i := 0; i < len(n.pairs); i++ {
		outer := n.pairs[i]
		field := f.byKey[outer.key.text]
		if field == nil || !outer.value.isNull() {
			continue
		}
		below := formBelow(field.typ)
		to := i + 1
		for to < len(n.pairs) && belongs(n.pairs[to], f, below) && n.pairs[to].key.rng.Start.Column == outer.key.rng.Start.Column {
			to++
		}
		if to == i+1 {
			continue
		}
		moved := mappingOf(n.pairs[i+1 : to])
		d.fail(outer.value.rng, "wrong-type", fmt.Sprintf("%s has no value: %s below it %s not indented", field.name(), keysText(moved), are(moved)),
			d.indentHint(outer.key.text, outer.key.rng.Start.Column-1, moved))
		kept := *n
		kept.pairs = append(append([]pair{}, n.pairs[:i]...), pair{outer.key, moved})
		kept.pairs = append(kept.pairs, n.pairs[to:]...)
		n = &kept
	}
	return n
}

// withParent adds the one key that the keys of a mapping lack above them:
// `workshop:` of the file, `container:` of a workshop.
func (d *decoder) withParent(n *node, f *form) *node {
	key := ""
	switch f {
	case formOf(reflect.TypeFor[document]()):
		if key = "workshop"; !hasKey(n, "container") && !hasKey(n, "workers") {
			return n
		}
	case formOf(reflect.TypeFor[workshopForm]()):
		key = "container"
	default:
		return n
	}
	if hasKey(n, key) {
		return n
	}
	field := f.byKey[key]
	below := formBelow(field.typ)
	from, to := 0, 0
	for i, p := range n.pairs {
		if !belongs(p, f, below) {
			continue
		}
		if to > 0 && to != i {
			return n // in two places
		}
		if to == 0 {
			from = i
		}
		to = i + 1
	}
	if to == 0 {
		return n
	}
	moved := mappingOf(n.pairs[from:to])
	d.fail(startOf(n.rng), "missing-key", fmt.Sprintf("the key %q is missing%s: %s belong%s below it", key, f.in(), keysText(moved), map[bool]string{true: "s"}[len(moved.pairs) == 1]),
		d.indentHint(key, n.pairs[from].key.rng.Start.Column-1, moved))
	kept := *n
	name := &node{kind: scalarNode, tag: "!!str", text: key, inner: -1, rng: startOf(moved.rng)}
	kept.pairs = append(append([]pair{}, n.pairs[:from]...), pair{name, moved})
	kept.pairs = append(kept.pairs, n.pairs[to:]...)
	return &kept
}

// belongs reports whether a key is one of the inner form and not of the outer one.
func belongs(p pair, outer, inner *form) bool {
	return inner != nil && p.key.kind == scalarNode && outer.byKey[p.key.text] == nil && inner.byKey[p.key.text] != nil
}

// formBelow is the form of the mapping that a field takes; nil for another type.
func formBelow(t reflect.Type) *form {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[partialNetwork]():
		t = reflect.TypeFor[networkForm]()
	case t == reflect.TypeFor[Build]():
		t = reflect.TypeFor[buildForm]()
	}
	if _, ok := reflect.New(t).Interface().(titled); !ok {
		return nil
	}
	return formOf(t)
}

func mappingOf(pairs []pair) *node {
	out := &node{kind: mapNode, pairs: pairs, rng: pairs[0].key.rng}
	out.rng.End = later(pairs[len(pairs)-1].key.rng.End, pairs[len(pairs)-1].value.rng.End)
	return out
}

// keysText names the keys of a mapping: "mode", "mode and allow", "mode to dns".
func keysText(n *node) string {
	first, last := n.pairs[0].key.text, n.pairs[len(n.pairs)-1].key.text
	switch len(n.pairs) {
	case 1:
		return first
	case 2:
		return first + " and " + last
	}
	return first + " to " + last
}

func are(n *node) string {
	if len(n.pairs) == 1 {
		return "is"
	}
	return "are"
}

// indentHint has the key and the lines to write below it, or says which lines.
func (d *decoder) indentHint(key string, column int, moved *node) string {
	from, to := moved.rng.Start.Line, moved.rng.End.Line
	if lines, ok := d.lines(from, to, column); ok {
		pad := strings.Repeat(" ", column)
		return "write:\n" + pad + key + ":\n  " + strings.Join(lines, "\n  ")
	}
	return fmt.Sprintf("write `%s:` above line %d and indent lines %d to %d: `sed -i '%d,%ds/^/  /' %s`", key, from, from, to, from, to, shellquote.Path(d.src.name))
}

// lines are lines of the file that a hint can repeat: few, short, and indented by
// column or more.
func (d *decoder) lines(from, to, column int) ([]string, bool) {
	if to-from >= maxMoved || to > len(d.src.lines) {
		return nil, false
	}
	var out []string
	for line := from; line <= to; line++ {
		at, end := d.src.lines[line-1], len(d.src.data)
		if line < len(d.src.lines) {
			end = d.src.lines[line]
		}
		if end-at > maxFlow {
			return nil, false
		}
		text := strings.TrimRight(string(d.src.data[at:end]), " \r\n")
		if text != "" && !strings.HasPrefix(text, strings.Repeat(" ", column)) {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}
