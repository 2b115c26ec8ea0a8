// Package early runs `workshop-init contain` while the program is still being
// initialised. Packages are initialised in the order of their paths, each after
// what it imports (Go's specification, Program initialization): those of
// networks and certificates, which a container's start has no use for, come
// later and cost it half a millisecond. Only workshop-init imports it.
package early

import (
	"os"

	"github.com/llmdo/workshop/internal/engine/namespace/container"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "contain" {
		os.Exit(container.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
}
