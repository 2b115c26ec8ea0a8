package workshop

import (
	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// Identity returns the name and the isolation that a workshop.yaml says, and
// nothing else of it is looked at: what is wrong elsewhere doesn't matter. Empty
// where it isn't said by a plain text.
func Identity(data []byte) (name string, isolation Isolation) {
	var doc yaml.Node
	if err := yamltext.Load(data, &doc, maxDepth); err != nil || len(doc.Content) == 0 {
		return "", ""
	}
	form := plainValue(doc.Content[0], "workshop")
	if n := plainValue(form, "name"); n != nil && n.Kind == yaml.ScalarNode {
		name = n.Value
	}
	if n := plainValue(form, "isolation"); n != nil && n.Kind == yaml.ScalarNode {
		isolation = Isolation(n.Value)
	}
	return name, isolation
}

// plainValue returns the value of the first such key of a mapping; nil for none.
func plainValue(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
