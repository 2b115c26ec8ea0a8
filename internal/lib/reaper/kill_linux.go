package reaper

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// KillDescendants kills what runs below this process and waits until it is
// gone, but not longer than within. It returns how many processes are left.
func (r *Reaper) KillDescendants(within time.Duration) int {
	self := os.Getpid()
	return r.KillAll(within, func(list []Info) []Info { return Descendants(list, self) })
}

// KillAll kills what pick chooses of all processes, again and again until it
// chooses nothing that runs, but not longer than within. It returns how many
// are left.
//
// A program that forks as fast as it can has new children before the old ones
// are killed, as long as there is room for them. So from the third round on
// everything is stopped first: what is stopped doesn't fork, and keeps the
// worker's limit of processes reached for what does.
func (r *Reaper) KillAll(within time.Duration, pick func([]Info) []Info) int {
	deadline := time.Now().Add(within)
	stopped := map[int]uint64{}
	for round := 1; ; round++ {
		r.Reap()
		list, err := Scan()
		var alive []Info
		fresh := 0
		for _, i := range pick(list) {
			if i.Ended() {
				continue
			}
			alive = append(alive, i)
			if start, ok := stopped[i.Pid]; !ok || start != i.Start {
				fresh++
			}
		}
		if err == nil && len(alive) == 0 {
			return 0
		}
		over := time.Now().After(deadline)
		if round > 2 && fresh > 0 && !over {
			for _, i := range alive {
				if stopped[i.Pid] != i.Start {
					i.Signal(unix.SIGSTOP)
					stopped[i.Pid] = i.Start
				}
			}
			continue
		}
		for _, i := range alive {
			i.Signal(unix.SIGKILL)
		}
		if over {
			if err != nil { // what can't be seen isn't gone
				return max(1, len(alive))
			}
			return len(alive)
		}
		clear(stopped)
		if round == 1 {
			time.Sleep(200 * time.Microsecond)
		} else {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// Signal sends a signal to the process that was seen, and to no other that has
// its number now.
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
	// A kernel or a seccomp profile without pidfd: the number is all there is.
	if err != nil || unix.PidfdSendSignal(fd, s, nil, 0) == unix.ENOSYS {
		_ = unix.Kill(i.Pid, s)
	}
}
