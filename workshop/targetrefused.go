package workshop

import (
	"strings"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// TargetRefused returns why nothing of the machine may be mounted at a clean absolute path,
// in words that follow it; empty: it may.
func TargetRefused(t string) string {
	if strings.ContainsFunc(t, deceives) || strings.Contains(t, ":") {
		return "has characters that no target has"
	}
	for _, own := range ourTargets {
		if subpath.Within(t, own) || subpath.Within(own, t) {
			return "workshop provides in every worker"
		}
	}
	for own := range tmpfsTargets {
		if subpath.Within(own, t) {
			return "would cover a memory file system"
		}
	}
	return ""
}
