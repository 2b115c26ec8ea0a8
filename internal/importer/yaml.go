package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// parseYAML reads YAML with aliases and merge keys, which Compose files have.
func parseYAML(s *source) (*node, *diag.Diagnostic) {
	data, whole := s.data, place{}
	if len(data) > MaxSize {
		return nil, s.invalid(whole, fmt.Sprintf("the file has %d bytes, more than %d", len(data), MaxSize), "")
	}
	if c, bad := yamltext.Check(data, 0); bad {
		return nil, s.invalid(place{from: c.At, to: c.At + c.Len}, c.Summary, c.Hint)
	}
	var doc yaml.Node
	err := yamltext.Load(data, &doc, maxDepth)
	if err != nil {
		d := s.invalid(whole, "not valid YAML: "+err.Error(), "")
		if load, ok := errors.AsType[*yaml.LoadError](err); ok {
			d.Summary = "not valid YAML: " + load.Message
			d.Range = s.span(place{line: load.Mark.Line, column: load.Mark.Column, to: 1})
		}
		return nil, d
	}
	if len(doc.Content) == 0 {
		return nil, s.invalid(whole, "the file is empty", "")
	}
	b := &yamlTree{left: maxNodes, open: map[*yaml.Node]bool{}}
	n := b.build(doc.Content[0], 0)
	if b.left < 0 {
		return nil, s.invalid(whole, fmt.Sprintf("the file has more than %d values, its aliases expanded, or nests deeper than %d levels", maxNodes, maxDepth), "")
	}
	return n, nil
}

// yamlTree turns the library's nodes into ours.
type yamlTree struct {
	left int
	open map[*yaml.Node]bool
}

func (b *yamlTree) build(n *yaml.Node, depth int) *node {
	out := &node{at: placeIn(n)}
	if b.left--; b.left < 0 || depth > maxDepth {
		b.left = -1
		return out
	}
	switch n.Kind {
	case yaml.AliasNode:
		if n.Alias == nil || b.open[n.Alias] {
			b.left = -1
			return out
		}
		b.open[n.Alias] = true
		defer delete(b.open, n.Alias)
		return b.build(n.Alias, depth+1)
	case yaml.SequenceNode:
		out.kind = list
		for _, c := range n.Content {
			out.items = append(out.items, b.build(c, depth+1))
		}
	case yaml.MappingNode:
		out.kind = mapping
		b.mapping(out, n, depth)
	default:
		out.kind, out.text = scalarKind(n), n.Value
		if out.kind == null {
			out.text = ""
		}
	}
	return out
}

// mapping builds pairs. What is merged (<<) comes first, so that the mapping's own keys
// win.
func (b *yamlTree) mapping(out *node, n *yaml.Node, depth int) {
	for i := 0; i+1 < len(n.Content) && b.left >= 0; i += 2 {
		k, v := n.Content[i], b.build(n.Content[i+1], depth+1)
		if k.Value == "<<" && k.Kind == yaml.ScalarNode {
			for _, from := range slices.Backward(v.each()) {
				out.pairs = slices.Concat(from.pairs, out.pairs)
			}
			b.left -= len(out.pairs)
			continue
		}
		out.pairs = append(out.pairs, pair{k.Value, placeIn(k), v})
	}
	out.pairs = lastOf(out.pairs)
}

func scalarKind(n *yaml.Node) kind {
	switch strings.TrimPrefix(n.ShortTag(), "!!") {
	case "null":
		return null
	case "int", "float":
		return number
	case "bool":
		return boolean
	}
	return text
}

func placeIn(n *yaml.Node) place {
	return place{line: n.Line, column: n.Column, to: max(1, len(n.Value))}
}
