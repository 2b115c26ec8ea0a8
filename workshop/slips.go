package workshop

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/tokens"
)

// What people write in the place of a value, as the line that is meant: hints
// then show the user's own values. A line is shown only if it is read without an
// error.

// maxFlow is the length of a line that a hint shows, in bytes.
const maxFlow = 120

// meant is the field with the line that was meant as its example, where one is
// found that is valid.
func (d *decoder) meant(n *node, f *field) *field {
	if f == nil || f.parent != "" || f.typ == nil || d.trial || full(d.problems) || !n.within(32*maxFlow) {
		return f
	}
	for _, text := range []string{d.src.meant(n, f.typ), d.src.workerNames(n, f.typ)} {
		if text != "" && len(text) <= maxFlow && tokens.In(text) == "" && d.reads(text, f) {
			g := *f
			g.example = "write " + f.keyName + ": " + text
			return &g
		}
	}
	return f
}

// within reports whether a value has at most that many bytes of text, with one more
// for each node: a long one is not repeated, and costs no work.
func (n *node) within(size int) bool {
	left := size
	var count func(n *node) bool
	count = func(n *node) bool {
		if left -= len(n.text) + 1; left < 0 {
			return false
		}
		for _, item := range n.items {
			if !count(item) {
				return false
			}
		}
		for _, p := range n.pairs {
			if !count(p.key) || !count(p.value) {
				return false
			}
		}
		return true
	}
	return count(n)
}

// reads reports whether text, in which … stands for more, is a valid value of the
// field. Unset variables, and what is wrong with single lines of allow, don't count:
// they are reported once the value has its form.
func (d *decoder) reads(text string, f *field) bool {
	p := &problems{}
	src := newSource(d.src.name, []byte(strings.ReplaceAll(text, ", …", "")))
	n := parse(src, p)
	if n == nil {
		return false
	}
	trial := *d
	trial.src, trial.problems, trial.trial = src, p, true
	trial.scope = &scope{keys: map[string]diag.Range{}, refused: map[string]bool{}}
	v := reflect.New(f.typ).Elem()
	trial.value(n, v, f)
	w, _ := v.Interface().(*partialNetwork)
	lines := w != nil && w.Allow != nil && len(*w.Allow) > 0
	return !slices.ContainsFunc(p.list, func(x diag.Diagnostic) bool {
		switch x.Code {
		case "wrong-type", "unknown-key", "unsupported-key":
			return true
		}
		return x.Severity == diag.Error && x.Code != "unset-variable" && !lines
	})
}

// meant returns the value of a type that was probably meant, on one line, or "".
func (s *source) meant(n *node, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[*[]allowLine](), reflect.TypeFor[*[]denyLine]():
		return inBrackets(s.ruleLines(n))
	case reflect.TypeFor[*partialNetwork]():
		return s.networkMeant(n)
	case reflect.TypeFor[*[]Mount]():
		return inBrackets(s.mountLines(n))
	case reflect.TypeFor[*[]Secret]():
		return inBrackets(s.secretLines(n))
	case reflect.TypeFor[*[]workerEntry]():
		return inBrackets(s.workerLines(n))
	case reflect.TypeFor[*[]Port]():
		return inBrackets(s.portLines(n))
	case reflect.TypeFor[*approvalsForm]():
		if n.kind == listNode {
			text, _ := s.flow(n)
			return "{rules: " + text + "}"
		}
	case reflect.TypeFor[map[string]Value[string]]():
		return s.variablesMeant(n)
	case reflect.TypeFor[map[string]mcpForm]():
		return inBraces(s.serverPairs(n))
	case reflect.TypeFor[*partialContainer]():
		if n.kind == scalarNode && !n.isNull() {
			return "{image: " + quoteFlow(n.text) + "}"
		}
		return inBraces(s.pairs(n))
	case reflect.TypeFor[*partialResources]():
		return inBraces(s.limitPairs(n))
	}
	if n.kind == scalarNode && !n.isNull() {
		text := scalarMeant(n.text, t)
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Slice {
			return inBrackets([]string{quoteFlow(text)})
		}
		return quoteFlow(text)
	}
	return ""
}

// merge is a list of mappings as one mapping; nil for another list.
func merge(n *node) *node {
	out := &node{kind: mapNode, rng: n.rng}
	for _, item := range n.items {
		if item.kind != mapNode {
			return nil
		}
		out.pairs = append(out.pairs, item.pairs...)
	}
	if len(out.pairs) == 0 {
		return nil
	}
	return out
}

// pairs are the entries of a mapping, or of a list of mappings, each on one line;
// nil if one can't be.
func (s *source) pairs(n *node) []string {
	if n.kind == listNode {
		if n = merge(n); n == nil {
			return nil
		}
	}
	var out []string
	for _, p := range n.pairs {
		key, ok := s.flow(p.key)
		value, good := s.flow(p.value)
		if !ok || !good {
			return nil
		}
		out = append(out, key+": "+value)
	}
	return out
}

// flow is a value on one line, as it is written within brackets; false for a long
// one, and for text over several lines.
func (s *source) flow(n *node) (string, bool) {
	switch n.kind {
	case scalarNode:
		if n.inner < 0 || len(n.text) > maxFlow {
			return "", n.isNull()
		}
		text := string(s.data[n.rng.Start.Byte:n.rng.End.Byte])
		if text != n.text { // quoted
			return text, true
		}
		return quoteFlow(text), true
	case mapNode:
		pairs := s.pairs(n)
		return inBraces(pairs), len(pairs) == len(n.pairs) && fits(pairs)
	case listNode:
		var items []string
		for _, item := range n.items {
			text, ok := s.flow(item)
			if items = append(items, text); !ok || !fits(items) {
				return "", false
			}
		}
		return "[" + strings.Join(items, ", ") + "]", true
	}
	return "", false
}

func fits(parts []string) bool {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return n <= maxFlow
}

// inBrackets is a list on one line, a long one with … for its end; "" for an empty one.
func inBrackets(items []string) string {
	if items = clipped(items); len(items) == 0 {
		return ""
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// inBraces is a mapping on one line, a long one with … for its end; "" for an empty one.
func inBraces(pairs []string) string {
	if pairs = clipped(pairs); len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// clipped are the first parts that leave room on a line, with … for others.
func clipped(parts []string) []string {
	if fits(parts) {
		return parts
	}
	const room = maxFlow * 2 / 3
	size, n := 0, 0
	for size+len(parts[n]) <= room {
		size += len(parts[n]) + len(", ")
		n++
	}
	if n == 0 {
		return nil
	}
	return append(slices.Clip(parts[:n]), "…")
}

// quoteFlow is text as it is written within brackets, in quotes if it needs them.
func quoteFlow(text string) string {
	if plainFlow(text) {
		return text
	}
	return strconv.Quote(text)
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
	return text != "" && text != "~" && !strings.EqualFold(text, "null") && !strings.ContainsAny(text, ",[]{}#\"'\n\t&*!|>%@`$\\ ") && !strings.HasSuffix(text, ":") && !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "?")
}
