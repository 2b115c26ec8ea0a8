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

// ourTargets are paths in a container that the compile or the engine fills.
var ourTargets = []string{
	"/opt/workshop", "/run", "/var/run", "/proc", "/sys", "/dev", "/etc/workshop",
	"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf",
}

// tmpfsTargets are the paths of our tmpfs and the key that sizes each.
var tmpfsTargets = map[string]string{"/tmp": "tmp", "/scratch": "scratch", "/home/worker": "home"}

// TmpfsAt returns the sized memory file system that a path of a worker, absolute and
// clean, is on where no mount covers it, and the key of the size; empty: none.
func TmpfsAt(p string) (target, key string) {
	for own, key := range tmpfsTargets {
		if subpath.Within(p, own) {
			return own, key
		}
	}
	return "", ""
}
