// Package pid1 has the limits of a worker's processes, and reads the arguments of its PID 1. They apply to everything that
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

// Files and Signals are the most open files (RLIMIT_NOFILE) and queued signals
// (RLIMIT_SIGPENDING) of a worker's processes.
//
// The kernel counts descriptors that are under way in sockets for each uid, and refuses a
// sender whose own limit is reached: what workers can have under way leaves room for the
// guard, the room, the supervisor and the caller, whose limits are higher.
//
// Signals is far below what a user may have (half of the machine's threads). The kernel
// counts queued signals and POSIX timers for each uid, too, and compares with the
// receiver's limit (kernel/signal.c): where workers reach theirs, real-time signals still
// reach the user's other programs. Go and the C library change the credentials of all
// threads by such signals, and wait for each.
const (
	Files   = 4096
	Signals = 1024
)
