package reaper

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// KillDescendants kills all descendants of this process and waits for their end, but not
// longer than within. It returns how many are left.
func (r *Reaper) KillDescendants(within time.Duration) int {
	self := os.Getpid()
	return r.KillAll(within, func(list []Info) []Info { return Descendants(list, self) })
}

// KillAll repeatedly kills the processes that pick selects until it selects no living
// one, but not longer than within. It returns how many are left.
//
// Processes that fork and end faster than they can be listed aren't seen in
// time, but each leaves one that has ended and falls to this process. Orphans stay
// uncollected until all is over: they keep their places in the worker's limit of
// processes, so that there is soon none for the next. Those that pick chooses also
// show that there was something that the list missed: where there are new ones, a
// list without a living process isn't believed.
func (r *Reaper) KillAll(within time.Duration, pick func([]Info) []Info) int {
	deadline := time.Now().Add(within)
	r.reap()
	r.hold(1)
	defer r.reap()
	defer r.hold(-1)
	self := os.Getpid()
	ended := map[Info]bool{} // children of this process, by pid and start
	for round := 1; ; round++ {
		r.reap()
		list, err := Scan()
		var alive []Info
		before := len(ended)
		for _, i := range pick(list) {
			switch {
			case !i.Ended():
				alive = append(alive, i)
			case i.Parent == self:
				ended[Info{Pid: i.Pid, Start: i.Start}] = true
			}
		}
		missed := len(ended) > before
		if err == nil && len(alive) == 0 && !missed {
			return 0
		}
		for _, i := range alive {
			i.Signal(unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			if err != nil || missed { // the list is incomplete
				return max(1, len(alive))
			}
			return len(alive)
		}
		if round == 1 {
			time.Sleep(200 * time.Microsecond)
		} else {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// Signal sends a signal to the listed process, and never to another with a reused PID.
func (i Info) Signal(s unix.Signal) {
	fd, err := unix.PidfdOpen(i.Pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := Look(strconv.Itoa(i.Pid)); !ok || now.Start != i.Start {
		return
	}
	// A kernel or a seccomp profile without pidfd: only the PID can be used.
	if err != nil || unix.PidfdSendSignal(fd, s, nil, 0) == unix.ENOSYS {
		_ = unix.Kill(i.Pid, s)
	}
}
