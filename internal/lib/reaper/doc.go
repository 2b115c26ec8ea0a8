// Package reaper starts and reaps processes in a process that must reap all: PID 1 of a
// worker, and a session of the toolbox, which gets orphans. os/exec can't be used there,
// because a wait for any process consumes the status that it waits for.
package reaper
