package yamltext

import (
	"errors"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// ErrTooDeep means that a document nests deeper than it may.
var ErrTooDeep = errors.New("nested too deep")

// Load reads the nodes of one document, nested at most depth deep (B60), without looking at
// what they mean.
func Load(data []byte, doc *yaml.Node, depth int) error {
	return yaml.Load(data, doc, yaml.WithPlugin(loaderlimits.New(
		loaderlimits.DepthFunc(func(at int, _ *loaderlimits.DepthContext) error {
			if at > depth {
				return ErrTooDeep
			}
			return nil
		}),
	)))
}
