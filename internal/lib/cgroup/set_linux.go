package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// setting is a file of a group, the value to write, and the expected value afterwards.
type setting struct {
	limit       string // which limit it is part of
	file, value string
	says        string // prefix of the value read back; "": see atMost
	atMost      int64  // the number read back, or at most a page less
}

// setLimits writes the limits of one directory and reads each back, because the kernel
// may have changed the value.
func setLimits(dir string, pl place, l Limit, machineSwaps bool) error {
	for _, s := range settings(dir, pl, l, machineSwaps) {
		if err := write(dir+"/"+s.file, s.value); errors.Is(err, unix.ENOENT) {
			return &Unavailable{Missing: []Missing{{s.limit, "the kernel has no " + s.file}}, Do: without}
		} else if errors.Is(err, unix.EINVAL) && s.limit == CPU {
			return fmt.Errorf("%w (a group above may have less: on v1 none below it gets more)", err)
		} else if err != nil {
			return err
		}
		b, err := os.ReadFile(dir + "/" + s.file)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		now := strings.TrimSpace(string(b))
		if s.says != "" && (now == s.says || strings.HasPrefix(now, s.says+"\n")) {
			continue
		}
		n, err := strconv.ParseInt(now, 10, 64)
		if s.says != "" || err != nil || n > s.atMost || n < s.atMost-int64(os.Getpagesize()) {
			return fmt.Errorf("cgroup: %s/%s says %q after %q was written", dir, s.file, now, s.value)
		}
	}
	return nil
}

func settings(dir string, pl place, l Limit, machineSwaps bool) []setting {
	var list []setting
	bytes := func(limit, file string, n int64) {
		list = append(list, setting{limit, file, strconv.FormatInt(n, 10), "", n})
	}
	text := func(limit, file, value string) { list = append(list, setting{limit, file, value, value, 0}) }
	for _, c := range pl.controllers {
		switch {
		case c == Memory && l.MemoryBytes > 0 && pl.v2:
			bytes(Memory, "memory.max", l.MemoryBytes)
			// memory.oom.group stays 0, as with Docker: the process that is too
			// large ends, and the toolbox can say so.
			if swap := "memory.swap.max"; machineSwaps || exists(dir+"/"+swap) {
				if l.SwapBytes > 0 {
					bytes(Swap, swap, l.SwapBytes)
				} else {
					text(Swap, swap, "0")
				}
			}
		case c == Memory && l.MemoryBytes > 0:
			bytes(Memory, "memory.limit_in_bytes", l.MemoryBytes)
			// After the limit, which it must not be below.
			if swap := "memory.memsw.limit_in_bytes"; machineSwaps || exists(dir+"/"+swap) {
				bytes(Swap, swap, l.MemoryBytes+min(l.SwapBytes, math.MaxInt64-l.MemoryBytes))
			} else {
				// No accounting and no swap. Should some be added later, the kernel
				// still doesn't use it for this group unless it has nothing else.
				text(Swap, "memory.swappiness", "0")
			}
			// It is inherited, and would stop a worker at its limit forever.
			if n, _ := field(read(dir+"/memory.oom_control"), "oom_kill_disable"); n != 0 {
				list = append(list, setting{Memory, "memory.oom_control", "0", "oom_kill_disable 0", 0})
			}
		case c == CPU && l.CPUs > 0:
			quota, period := quota(l.CPUs)
			if pl.v2 {
				text(CPU, "cpu.max", fmt.Sprintf("%d %d", quota, period))
			} else {
				text(CPU, "cpu.cfs_period_us", strconv.FormatInt(period, 10))
				text(CPU, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
			}
		case c == PIDs && l.PIDs > 0:
			text(PIDs, "pids.max", strconv.FormatInt(l.PIDs, 10))
		}
	}
	return list
}

// quota in microseconds per period. The kernel takes 1 ms at least, and a
// period of 1 s at most (cgroup-v2.rst, sched/core.c: tg_set_cfs_bandwidth);
// the usual period is 100 ms.
func quota(cpus float64) (quota, period int64) {
	period = 100_000
	if cpus*float64(period) < 1000 {
		period = 1_000_000
	}
	return max(1000, int64(min(cpus, 1e6)*float64(period))), period
}

// uses reports whether a group has the controller here.
func (pl place) uses(controller string) bool { return slices.Contains(pl.controllers, controller) }
