package workshop

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
)

// kind is what a node of the file is.
type kind int

const (
	scalarNode kind = iota + 1
	listNode
	mapNode
)

// node is one value of the file with its place. Aliases are replaced by what
// they refer to; such a node has the place where it is written.
type node struct {
	kind  kind
	text  string // of a scalar, unquoted
	tag   string // of a scalar: !!str !!int !!float !!bool !!null
	inner int    // byte at which text is literally in the file; -1 if it is escaped or folded
	items []*node
	pairs []pair
	rng   diag.Range
}

// pair is one key of a mapping.
type pair struct{ key, value *node }

func (n *node) isNull() bool { return n.kind == scalarNode && n.tag == "!!null" }

// describe names what the node is, for "expected a list, found …".
func (n *node) describe() string {
	switch n.kind {
	case listNode:
		return "a list"
	case mapNode:
		return "a mapping"
	}
	switch n.tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	case "!!str", "":
		return "text"
	}
	return "a value with the tag " + n.tag
}

// treeBuilder turns the nodes of the YAML library into ours.
type treeBuilder struct {
	src   *source
	diags *problems
	left  int                 // nodes until maxNodes
	open  map[*yaml.Node]bool // anchors that are being expanded
	over  bool
}

func (b *treeBuilder) build(n *yaml.Node, depth int) *node {
	if b.left--; b.left < 0 || depth > maxDepth {
		if !b.over {
			b.over = true
			b.diags.add(tooLarge(b.src, b.at(n), depth > maxDepth))
		}
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		if n.Alias == nil || b.open[n.Alias] {
			b.diags.add(diag.Diagnostic{
				Severity: diag.Error, Code: "alias", Summary: "the alias *" + n.Value + " contains itself",
				Hint: "write the value out", Range: b.at(n),
			})
			return nil
		}
		b.open[n.Alias] = true
		defer delete(b.open, n.Alias)
		return b.build(n.Alias, depth)
	case yaml.MappingNode:
		out := &node{kind: mapNode, rng: b.at(n)}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := b.build(n.Content[i], depth+1), b.build(n.Content[i+1], depth+1)
			if k == nil || v == nil {
				if b.over {
					return nil
				}
				continue
			}
			out.pairs = append(out.pairs, pair{k, v})
		}
		b.close(out, n, '}')
		return out
	case yaml.SequenceNode:
		out := &node{kind: listNode, rng: b.at(n)}
		for _, c := range n.Content {
			item := b.build(c, depth+1)
			if item == nil {
				if b.over {
					return nil
				}
				continue
			}
			out.items = append(out.items, item)
		}
		b.close(out, n, ']')
		return out
	}
	return b.scalar(n)
}

// at returns the place where a node begins.
func (b *treeBuilder) at(n *yaml.Node) diag.Range {
	at := b.src.offset(n.Line, n.Column)
	return b.src.span(at, at)
}

// scalar finds the end of a scalar in the text.
func (b *treeBuilder) scalar(n *yaml.Node) *node {
	data := b.src.data
	from := b.src.offset(n.Line, n.Column)
	at := from
	for at < len(data) && (data[at] == '&' || data[at] == '!') && n.Value != "" {
		for at < len(data) && !bytes.ContainsRune([]byte(" \t\r\n,]}"), rune(data[at])) {
			at++
		}
		for at < len(data) && (data[at] == ' ' || data[at] == '\t') {
			at++
		}
	}
	out := &node{kind: scalarNode, text: n.Value, tag: n.ShortTag(), inner: -1}
	to := at
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0, n.Style&yaml.SingleQuotedStyle != 0:
		to = closingQuote(data, at)
		if to-at >= 2 && string(data[at+1:to-1]) == n.Value {
			out.inner = at + 1
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		to = b.src.lineEnd(at)
	case bytes.HasPrefix(data[at:], []byte(n.Value)):
		to, out.inner = at+len(n.Value), at
	default: // a plain scalar over several lines
		to = b.src.lineEnd(at)
	}
	out.rng = b.src.span(at, to)
	return out
}

// closingQuote returns the byte after the quote that ends the scalar at at.
func closingQuote(data []byte, at int) int {
	if at >= len(data) {
		return at
	}
	quote := data[at]
	for i := at + 1; i < len(data); i++ {
		switch {
		case quote == '"' && data[i] == '\\':
			i++
		case data[i] != quote:
		case quote == '\'' && i+1 < len(data) && data[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return len(data)
}

// close sets the end of a list or mapping: after its last value, and after
// the bracket in flow style.
func (b *treeBuilder) close(out *node, n *yaml.Node, bracket byte) {
	end := out.rng.Start
	if i := len(out.items); i > 0 {
		end = later(end, out.items[i-1].rng.End)
	}
	if i := len(out.pairs); i > 0 {
		end = later(end, out.pairs[i-1].value.rng.End)
	}
	if n.Style&yaml.FlowStyle != 0 {
		rest := b.src.data[end.Byte:]
		if i := bytes.IndexByte(rest[:min(len(rest), 200)], bracket); i >= 0 && !strings.ContainsAny(string(rest[:i]), "#") {
			end = b.src.pos(end.Byte + i + 1)
		}
	}
	out.rng.End = end
}

func later(a, b diag.Pos) diag.Pos {
	if b.Byte > a.Byte {
		return b
	}
	return a
}
