package attacks

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// schedIdle is SCHED_IDLE of linux/sched.h.
const schedIdle = 5

// slow gives a process, its group or its user less of the processor, or fewer
// descriptors.
func slow(words []string, _ map[string]string) (string, string) {
	return probe.Seen(slowed(words[0], number(words[1], 0)))
}

func slowed(call string, id int) error {
	var none int32 // struct sched_param
	var errno unix.Errno
	switch call {
	case "sched_setscheduler":
		_, _, errno = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), schedIdle, uintptr(unsafe.Pointer(&none)))
	case "sched_setparam":
		_, _, errno = unix.Syscall(unix.SYS_SCHED_SETPARAM, uintptr(id), uintptr(unsafe.Pointer(&none)), 0)
	case "sched_setattr":
		return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle}, 0)
	case "process":
		return unix.Setpriority(unix.PRIO_PROCESS, id, 19)
	case "group":
		return unix.Setpriority(unix.PRIO_PGRP, id, 19)
	case "user":
		return unix.Setpriority(unix.PRIO_USER, id, 19)
	case "ioprio_set":
		const process, idle = 1, 3 << 13 // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE
		_, _, errno = unix.Syscall(unix.SYS_IOPRIO_SET, process, uintptr(id), idle)
	case "prlimit64":
		return unix.Prlimit(id, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
	default:
		return unix.EINVAL
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// flood sends signals to all threads of a process, from many of its own, and doesn't
// return: real-time ones, which the kernel queues. The file is made when that begins.
func flood(words []string, _ map[string]string) (string, string) {
	pid := number(words[0], 0)
	tasks, err := os.ReadDir("/proc/" + words[0] + "/task")
	if err != nil {
		return probe.Seen(err)
	}
	const threads, first, last = 100, unix.Signal(35), unix.Signal(64)
	runtime.GOMAXPROCS(threads)
	for range threads {
		go func() {
			for {
				for s := first; s <= last; s++ {
					for _, t := range tasks {
						_ = unix.Tgkill(pid, number(t.Name(), 0), s)
					}
				}
			}
		}()
	}
	if err := os.WriteFile(words[1], nil, 0o644); err != nil {
		return probe.Seen(err)
	}
	select {}
}
