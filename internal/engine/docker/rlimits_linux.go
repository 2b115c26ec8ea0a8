package docker

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// ownLimits returns the hard limits of processes and open files that this program has
// (getrlimit(2)); -1: none, or unknown. podman lowers its own of processes to what the
// kernel can have (podman 4.3.1).
func ownLimits() (processes, files int64) {
	most := int64(-1)
	if text, err := boundedfile.Read("/proc/sys/kernel/pid_max", 64); err == nil { // proc_sys_kernel(5)
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			most = n
		}
	}
	if processes = hard(unix.RLIMIT_NPROC); most >= 0 && (processes < 0 || processes > most) {
		processes = most
	}
	return processes, hard(unix.RLIMIT_NOFILE)
}

func hard(resource int) int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil || limit.Max > 1<<62 {
		return -1
	}
	return int64(limit.Max)
}
