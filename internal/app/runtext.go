package app

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// A run's file is made of values of the command line. The YAML library writes them; for
// each line of the text it is known from which flag it comes, so that what is wrong with
// it is said of the flag.
type (
	// yamlItem is a value.
	yamlItem interface {
		node() *yaml.Node
		// mark notes the flags by the lines of n, which is what was read of the text.
		mark(n *yaml.Node, flags map[int]string)
	}
	yamlMap  []yamlPair
	yamlPair struct {
		key   string
		value yamlItem
	}
	yamlList []yamlItem
	// yamlInline is a value on one line.
	yamlInline struct{ yamlItem }
	yamlLeaf   struct {
		n    *yaml.Node
		flag string
	}
)

// yamlScalarNode is a text without variables.
func yamlScalarNode(text, flag string) yamlLeaf {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: diag.Literal(text)}
	switch {
	case plainNumber(text):
		n.Tag = ""
	case strings.ContainsAny(text, "\n\r\t"):
		n.Style = yaml.DoubleQuotedStyle // one line
	}
	return yamlLeaf{n, flag}
}

// yamlTemplate is a text whose variables the loader replaces.
func yamlTemplate(text, flag string) yamlLeaf {
	return yamlLeaf{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, flag}
}

// yamlFlow is a value of our own text.
func yamlFlow(text, flag string) (yamlItem, error) {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		return nil, err
	}
	return yamlLeaf{doc.Content[0], flag}, nil
}

// mountItem is a mount: in the short form where that can say it.
func mountItem(m workshop.Mount, flag string) yamlItem {
	if !m.OutsideProject && !strings.ContainsAny(m.Source.V+m.Target.V, ":\n\r\t") {
		source := m.Source.V
		if source != "." {
			source = "./" + source
		}
		text := source + ":" + m.Target.V
		if m.ReadWrite {
			text += ":rw"
		}
		return yamlScalarNode(text, flag)
	}
	var out yamlMap
	out.scalar("source", m.Source.V, flag)
	out.scalar("target", m.Target.V, flag)
	if m.ReadWrite {
		out.scalar("mode", "rw", flag)
	}
	if m.OutsideProject {
		out = append(out, yamlPair{"outside_project", yamlLeaf{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}, flag}})
	}
	return out
}

func (m *yamlMap) scalar(key, text, flag string) {
	if text != "" {
		*m = append(*m, yamlPair{key, yamlScalarNode(text, flag)})
	}
}

// add leaves out what is nil.
func (m *yamlMap) add(key string, v yamlItem) {
	switch x := v.(type) {
	case yamlMap:
		if x == nil {
			return
		}
	case yamlList:
		if x == nil {
			return
		}
	}
	*m = append(*m, yamlPair{key, v})
}

func (m yamlMap) has(key string) bool {
	for _, p := range m {
		if p.key == key {
			return true
		}
	}
	return false
}

func (l yamlLeaf) node() *yaml.Node { return l.n }

func (m yamlMap) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, p := range m {
		n.Content = append(n.Content, yamlTemplate(p.key, "").n, p.value.node())
	}
	return n
}

func (l yamlList) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if len(l) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, x := range l {
		n.Content = append(n.Content, x.node())
	}
	return n
}

func (x yamlInline) node() *yaml.Node {
	n := x.yamlItem.node()
	n.Style = yaml.FlowStyle
	return n
}

func (l yamlLeaf) mark(n *yaml.Node, flags map[int]string) {
	if l.flag != "" {
		flags[n.Line] = l.flag
	}
}

func (m yamlMap) mark(n *yaml.Node, flags map[int]string) {
	for i, p := range m {
		p.value.mark(n.Content[2*i+1], flags)
	}
}

func (l yamlList) mark(n *yaml.Node, flags map[int]string) {
	for i, x := range l {
		x.mark(n.Content[i], flags)
	}
}

// writeYAML returns the text of a value, and the flag of each line that has one.
func writeYAML(x yamlItem) (text []byte, flags map[int]string, err error) {
	if text, err = yaml.Dump(x.node(), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1)); err != nil {
		return nil, nil, err
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, nil, err
	}
	flags = map[int]string{}
	if len(doc.Content) > 0 {
		x.mark(doc.Content[0], flags)
	}
	return text, flags, nil
}
