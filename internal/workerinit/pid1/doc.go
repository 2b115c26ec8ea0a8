// Package pid1 reads the arguments of a worker's PID 1. They say what holds for
// everything that is started in the worker later, and can't be changed from
// outside of PID 1: it is not dumpable.
package pid1

// Flags of the gate that what is started later reads.
const (
	Tools   = "--tools"
	Workdir = "--workdir"
)
