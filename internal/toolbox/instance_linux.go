package toolbox

import (
	"os"
	"strconv"
	"strings"
)

// instance names this run of the worker by the time at which its PID 1 was
// started, in ticks since the machine was (proc_pid_stat(5), field 22). Empty
// where it can't be read.
func instance() string {
	b, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return ""
	}
	// The second field, a name in parentheses, may hold anything.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const start = 22 - 3 // the third field is the first after the name
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

// oomKills is how many processes of the container the kernel has ended for its
// memory; -1 where it can't be read.
func (s *session) oomKills() int64 {
	if s.view != nil {
		return -1 // those are the machine's
	}
	for _, file := range oomFiles {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
					return n
				}
			}
		}
	}
	return -1
}
