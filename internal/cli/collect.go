package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// collectLater lets the first garbage collection start at 16 MiB and not at 4:
// most commands end before, and one that they begin costs `call` a third more
// (46 ms of processor time against 35). After the first one it is as ever. GOGC of
// the environment holds.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	before := debug.SetGCPercent(400)
	first := new(*int) // a pointer inside keeps it out of the allocator for tiny objects
	runtime.SetFinalizer(first, func(**int) { debug.SetGCPercent(before) })
}
