// Package pid1 reads the arguments of a worker's PID 1. They apply to everything that
// is started in the worker later, and can't be changed by other processes, as PID 1 is
// not dumpable.
package pid1

// Flags of `workshop-init gate` that later processes read.
const (
	Tools   = "--tools"
	Workdir = "--workdir"
)

// MountLost is the exit code of a worker that ended since one of its mounts was taken
// away from it.
const MountLost = 3
