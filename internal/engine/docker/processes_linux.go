package docker

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// processes returns the hard limit of processes that a program of this machine has
// (getrlimit(2)); -1: it isn't known. podman lowers its own to the number of processes that
// the kernel can have (podman 4.3.1).
func processes() int64 {
	var limit unix.Rlimit
	text, err := boundedfile.Read("/proc/sys/kernel/pid_max", 64) // proc_sys_kernel(5)
	if err != nil || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return -1
	}
	most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return -1
	}
	return int64(min(limit.Max, uint64(most)))
}
