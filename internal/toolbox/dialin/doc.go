// Package dialin brings a connection of the host to PID 1 of a worker without a
// place that the worker could write to.
//
// The host makes a directory for each worker in its runtime directory (mode
// 0755: inotify(7) wants to read it, and the worker need not have the host's
// uid; the runtime directory around it is the user's alone) and binds it
// read-only at [Dir]. For a session the host listens on a socket there and
// renames it to a name that ends in [Suffix]; PID 1 watches the directory
// (inotify(7), or polling where the kernel gives no watch), connects, and starts a
// session on the connection. So nothing in
// the worker listens, and nothing there can be put in the listener's place.
//
// Each side looks at the other by SO_PEERCRED (unix(7)): the host wants the
// process that is PID 1 of the worker, as the engine names it; PID 1 wants one
// that is not in its process namespace (pid 0). Others are let go.
package dialin

import (
	"time"

	"github.com/llmdo/workshop/tool"
)

// Dir is where a worker's PID 1 sees the directory.
const Dir = tool.DialInDir

// Suffix of a socket that waits for a connection.
const Suffix = ".sock"

// unready is the suffix of what isn't offered yet.
const unready = ".new"

// End is the name of a file by which the host ends the worker: PID 1 exits, and
// the kernel kills the rest. It is for where the engine can't: one waits for a
// process that it started in a worker, and a worker can stop that for ever.
const End = "end"

// MaxSessions of a worker at a time; one more waits for the end of another.
const MaxSessions = 16

// Wait is how long the host waits for the worker. A worker that runs connects
// within a millisecond.
const Wait = time.Second
