package edit

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// word is a scalar as it is read from plain text.
func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func listOf(n *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{n}}
}

func mappingOf(n ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: n}
}

// newList adds the key allow or deny to a network that is a mapping.
func (e *editor) newList(n entry) error {
	key := e.list()
	v := n.value
	if v.Style&yaml.FlowStyle != 0 {
		x, ok := e.flow(e.offset(v))
		if !ok {
			return e.byHand(n.key, "the network is written in a way that can't be edited here", nil)
		}
		e.insertions = e.into(x, key+": ["+e.line.Text+"]", e.line.Comment)
		v.Content = append(v.Content, word(key), listOf(e.item))
		return nil
	}
	depth := v.Column - 1
	after := e.after(v, "mode", "allow")
	k, value := v.Content[after], v.Content[after+1]
	line := e.pairEnd(k, value, depth)
	e.insertions = append(e.insertions, e.below(line, e.keyLine(depth, key), e.itemLine(depth+e.nest, "- ")))
	v.Content = slices.Insert(v.Content, after+2, word(key), listOf(e.item))
	return nil
}

// pairEnd returns the last line of a key's value in a block mapping whose keys
// are indented by depth.
func (e *editor) pairEnd(k, v *yaml.Node, depth int) int {
	from := k.Line
	if x, ok := e.flow(e.offset(v)); ok && v.Style&yaml.FlowStyle != 0 {
		from = e.lineOf(x.close)
	}
	return e.blockEnd(from, depth, v.Kind == yaml.SequenceNode)
}

// after returns the place in a mapping's content of the last of these keys,
// or of its last key.
func (e *editor) after(m *yaml.Node, keys ...string) int {
	at := len(m.Content) - 2
	found := -1
	for i := 0; i+1 < len(m.Content); i += 2 {
		if j := slices.Index(keys, m.Content[i].Value); j > found {
			at, found = i, j
		}
	}
	return at
}

// newNetwork adds the key network to the workshop's container.
func (e *editor) newNetwork(c entry) error {
	e.at = c.key
	v := c.value
	short := "network: {mode: restricted, allow: [" + e.line.Text + "]}"
	network := mappingOf(word("mode"), word("restricted"), word("allow"), listOf(e.item))
	if v.Style&yaml.FlowStyle != 0 {
		x, ok := e.flow(e.offset(v))
		if !ok {
			return e.byHand(c.key, "the container is written in a way that can't be edited here", nil)
		}
		e.insertions = e.into(x, short, e.line.Comment)
		v.Content = append(v.Content, word("network"), network)
		return nil
	}
	depth := v.Column - 1
	step := max(2, v.Column-c.key.Column)
	after := e.after(v, "image", "build", "pull", "user", "workdir")
	k, value := v.Content[after], v.Content[after+1]
	line := e.pairEnd(k, value, depth)
	e.insertions = append(e.insertions, e.below(line,
		e.keyLine(depth, "network"), e.keyLine(depth+step, "mode")+" restricted",
		e.keyLine(depth+step, "allow"), e.itemLine(depth+step+e.nest, "- ")))
	v.Content = slices.Insert(v.Content, after+2, word("network"), network)
	return nil
}

// shortNetwork turns `network: restricted` into a mapping with that mode.
func (e *editor) shortNetwork(c, n entry) error {
	if err := e.checkMode(n.value); err != nil {
		return err
	}
	if e.line.Worker != "" && !e.line.Deny {
		return e.inherits(n.key)
	}
	value := e.offset(n.value)
	mode := *n.value
	*n.value = *mappingOf(word("mode"), &mode, word(e.list()), listOf(e.item))
	if c.value.Style&yaml.FlowStyle != 0 {
		end := value + len(mode.Value)
		if mode.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			end += 2
		}
		e.insertions = []insertion{{value, "{mode: "}, {min(end, len(e.data)), ", " + e.list() + ": [" + e.line.Text + "]}"}}
		return nil
	}
	// The colon, and nothing else, is between the key and the value.
	head := bytes.TrimRight(e.data[e.starts[mode.Line-1]:value], " ")
	if mode.Line != n.key.Line || len(head) == 0 || head[len(head)-1] != ':' {
		return e.byHand(n.key, "the network is written in a way that can't be edited here", nil)
	}
	depth := n.key.Column - 1
	step := max(2, n.key.Column-c.key.Column)
	e.insertions = []insertion{
		{e.starts[mode.Line-1] + len(head), e.end + e.keyLine(depth+step, "mode")},
		e.below(mode.Line, e.keyLine(depth+step, e.list()), e.itemLine(depth+step+e.nest, "- ")),
	}
	return nil
}

func (e *editor) keyLine(depth int, key string) string {
	return strings.Repeat(" ", depth) + key + ":"
}
