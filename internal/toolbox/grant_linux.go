package toolbox

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/tool"
)

// readGrant takes what the session may do from the arguments of PID 1. They
// can't be changed from outside of it: it is not dumpable. Without --tools,
// or with a PID 1 that is no gate, nothing is granted.
func readGrant() (tool.Grant, error) {
	b, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return tool.Grant{}, fmt.Errorf("what the worker's tools may do can't be read: %w", err)
	}
	text, ok := grantOf(strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"))
	if !ok {
		return tool.Grant{}, nil
	}
	return tool.ParseGrant(text)
}

// grantOf finds the value of --tools among the arguments of a gate.
func grantOf(argv []string) (string, bool) {
	at := slices.Index(argv, "gate")
	if at < 0 {
		return "", false
	}
	argv = argv[at+1:]
	at = slices.Index(argv, "--tools")
	if at < 0 || at+1 >= len(argv) {
		return "", false
	}
	return argv[at+1], true
}
