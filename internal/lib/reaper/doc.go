// Package reaper starts and collects processes where somebody must collect all
// of them: in PID 1 of a worker, and in a session of the toolbox, to which
// orphans fall. os/exec can't be used there, because a general wait takes away
// the status that it waits for.
package reaper
