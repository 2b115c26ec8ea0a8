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

// MarkEnv is the variable that a session gives to what its tools start:
// "PID.START.CALL", the session's process, when it began (Info.Start), and
// which call it is. Processes that leave their parents and their group can be
// found by it, as long as they keep their environment.
const MarkEnv = "WORKSHOP_CALL"

// Owner is the part of a mark that names this process.
func Owner() (string, error) {
	i, ok := Look("self")
	if !ok {
		return "", fmt.Errorf("/proc/self/stat can't be read")
	}
	return fmt.Sprintf("%d.%d", i.Pid, i.Start), nil
}

// maxEnviron is how much of an environment is looked at. The kernel gives no
// program more (execve(2): 6 MiB with its arguments), but a program may tell the
// kernel that its environment is all of its memory (PR_SET_MM_MAP, prctl(2)).
const maxEnviron = 8 << 20

// Mark reads the mark of a process; "" for none.
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

// strayLooks bounds how often KillStray looks again because of orphans that ended
// meanwhile: their marks can't be read any more, and most never had one.
const strayLooks = 5

// KillStray kills the processes of sessions that aren't there any more: one
// that was killed couldn't end them. PID 1 calls it, to which they fall.
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
