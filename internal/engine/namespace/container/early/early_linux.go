// Package early runs `workshop-init contain` during the initialisation of the
// program. Packages are initialised in the order of their paths, each after its
// imports (Go specification, Program initialization): those for networks and
// certificates, which a container's start doesn't need, come later and would cost
// half a millisecond. Only workshop-init imports it.
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
