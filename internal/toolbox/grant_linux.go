package toolbox

import (
	"fmt"

	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/tool"
)

// ofWorker returns what the session may do and where it works. Without --tools,
// or with a PID 1 that is not a gate, nothing is granted; without --workdir it stays
// where it was started.
func ofWorker() (g tool.Grant, dir string, err error) {
	args, _, err := pid1.Arguments()
	if err != nil {
		return g, "", fmt.Errorf("the worker's grant is not valid: %w", err)
	}
	dir, _ = pid1.Value(args, pid1.Workdir)
	if text, ok := pid1.Value(args, pid1.Tools); ok {
		g, err = tool.ParseGrant(text)
	}
	return g, dir, err
}
