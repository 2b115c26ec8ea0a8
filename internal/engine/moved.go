package engine

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// CheckMoved refuses the source of a mount that has been looked at, when there
// was no symbolic link in it any more, and that leads to another place since.
// Who can put a link there, as a worker of another project that writes above it,
// chooses no other source (B7).
func CheckMoved(c *compose.Compiled, target, source, real string) error {
	if real == source || c.Facts == nil {
		return nil
	}
	for _, s := range c.Facts.Sources {
		if s.Real != "" && (source == s.Real || strings.HasPrefix(source, strings.TrimSuffix(s.Real, "/")+"/")) {
			return &RefusedError{
				Promise: "B7", Reason: fmt.Sprintf("the source of %s, %s, was looked at, and leads to %s since", target, source, real),
				Do: "see what puts a symbolic link there, and run `workshop up` again",
			}
		}
	}
	return nil
}
