package reaper

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// MarkEnv is the variable that a session sets for processes of its tools:
// "PID.START.CALL", the session's PID, its start time (Info.Start), and the call.
// Processes that leave their parents and their group can be found by it, unless they
// change their environment.
const MarkEnv = "WORKSHOP_CALL"

// Owner is the part of a mark that names this process.
func Owner() (string, error) {
	i, ok := Look("self")
	if !ok {
		return "", fmt.Errorf("/proc/self/stat can't be read")
	}
	return fmt.Sprintf("%d.%d", i.Pid, i.Start), nil
}

// maxEnviron bounds how much of an environment is read. The kernel bounds it at execve(2)
// (6 MiB with the arguments), but a program may later declare all of its memory as its
// environment (PR_SET_MM_MAP, prctl(2)).
const maxEnviron = 8 << 20

// Mark returns the mark of a process; "" for none.
func Mark(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, maxEnviron), 32<<10)
	for begins := true; ; {
		entry, err := r.ReadSlice(0)
		if value, ok := bytes.CutPrefix(bytes.TrimSuffix(entry, []byte{0}), []byte(MarkEnv+"=")); ok && begins {
			return string(value)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return ""
		}
		begins = err == nil // else it is the rest of a long one
	}
}

// strayLooks bounds how often KillStray searches again because orphans have ended in
// between: their marks can no longer be read, and most never had one.
const strayLooks = 5

// KillStray kills processes of ended sessions: a killed session couldn't end them. It is
// called by PID 1, which gets them as orphans.
func (r *Reaper) KillStray(within time.Duration) int {
	self := os.Getpid()
	looks := 0
	return r.KillAll(within, func(list []Info) []Info {
		looks++
		there := make(map[string]bool, len(list))
		for _, i := range list {
			if !i.Ended() {
				there[fmt.Sprintf("%d.%d", i.Pid, i.Start)] = true
			}
		}
		var stray []Info
		for _, i := range list {
			if i.Pid == self {
				continue
			}
			if i.Ended() {
				if looks <= strayLooks {
					stray = append(stray, i) // it may have had a mark
				}
				continue
			}
			mark := Mark(i.Pid)
			if at := strings.LastIndexByte(mark, '.'); at > 0 && !there[mark[:at]] {
				stray = append(stray, i)
			}
		}
		return stray
	})
}
