package engine

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// CheckMoved refuses the source of a mount if its path, which was resolved before,
// now leads elsewhere. Somebody who can put a symbolic link there, such as a worker
// of another project, must not choose another source (B7).
func CheckMoved(c *compose.Compiled, target, source, real string) error {
	if real == source || c.Facts == nil {
		return nil
	}
	for _, s := range c.Facts.Sources {
		if s.Real != "" && (source == s.Real || strings.HasPrefix(source, strings.TrimSuffix(s.Real, "/")+"/")) {
			return &RefusedError{
				Promise: "B7", Reason: fmt.Sprintf("the source of %s, %s, was checked before and now leads to %s", target, source, real),
				Do: "find out what puts a symbolic link there, and run `workshop up` again",
			}
		}
	}
	return nil
}
