//go:build linux

package e2e

import "github.com/llmdo/workshop/e2e/scenario"

// Workshops that stand, for tests that only look.
var (
	restrictedStands = &scenario.Standing{Dir: "restricted"}
	mountsStands     = &scenario.Standing{Dir: "mounts"}
	openStands       = &scenario.Standing{Dir: "open"}
	roomsStands      = &scenario.Standing{Dir: "rooms"}
	intruderStands   = &scenario.Standing{Dir: "restricted", Prepare: withIntruder}
)
