package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Enforced are the limits that the kernel enforces on a process by its own groups,
// whoever set them. Zero: there is none.
type Enforced struct {
	Memory int64 // bytes
	// Swap is what may be used beyond memory, in bytes; -1: no limit. It is 0 where
	// the machine has no swap.
	Swap int64
	CPUs float64
	PIDs int64
	// Peak is the most memory that was used, in bytes; Killed and Full are how often a
	// process was OOM-killed, and a new one refused. -1: the kernel doesn't say.
	Peak, Killed, Full int64
	// Member: each group that was read lists the process.
	Member bool
}

// EnforcedOn reads the limits of the groups of a process, of version 1 or 2, and what
// happened in them. It must be called where the control groups of the machine are visible.
func EnforcedOn(pid int) (e Enforced, err error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return e, fmt.Errorf("cgroup: %w", err)
	}
	return enforcedOn(pid, string(mountinfo), true)
}

// LimitsOn is EnforcedOn without Peak, Killed, Full and Member, with a /proc/self/mountinfo
// that was read.
func LimitsOn(pid int, mountinfo string) (Enforced, error) {
	return enforcedOn(pid, mountinfo, false)
}

// Members are the processes of the control group that limits how many a process may have, itself
// among them.
func Members(pid int) (all []int, err error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, err
	}
	dir, _, err := groupOf(parseMounts(string(mountinfo)), string(b), PIDs, pid)
	if err != nil {
		return nil, err
	}
	for text := range strings.FieldsSeq(read(filepath.Join(dir, "cgroup.procs"))) {
		if n, err := strconv.Atoi(text); err == nil && n > 0 { // 0: of another PID namespace
			all = append(all, n)
		}
	}
	return all, nil
}

// groupOf is the directory of the group in which a controller limits a process, by the text of
// its /proc/PID/cgroup.
func groupOf(mounts []mount, self, controller string, pid int) (dir string, isV1 bool, err error) {
	own, own1 := parseSelf(self)
	m, isV1 := hierarchy(mounts, controller)
	if isV1 {
		own = own1[controller]
	}
	dir, ok := m.dirOf(own)
	if m.point == "" || own == "" || !ok {
		return "", isV1, fmt.Errorf("the group of %s of process %d is not visible here", controller, pid)
	}
	return dir, isV1, nil
}

func enforcedOn(pid int, mountinfo string, events bool) (e Enforced, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return e, err
	}
	mounts := parseMounts(mountinfo)
	e.Swap, e.Peak, e.Killed, e.Full, e.Member = -1, -1, -1, -1, true
	for _, c := range wanted {
		dir, isV1, err := groupOf(mounts, string(b), c, pid)
		if err != nil {
			return e, err
		}
		e.read(dir, c, isV1)
		if !events {
			continue
		}
		e.events(dir, c, isV1)
		e.Member = e.Member && slices.Contains(strings.Fields(read(filepath.Join(dir, "cgroup.procs"))), strconv.Itoa(pid))
	}
	if e.Swap == 0 {
		return e, nil
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without swap has no list of it
		return e, fmt.Errorf("cgroup: %w", err)
	}
	if !hasSwap(string(swaps)) {
		e.Swap = 0
	}
	return e, nil
}

// read takes the limits of one controller.
func (e *Enforced) read(dir, controller string, isV1 bool) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(read(filepath.Join(dir, name))), 10, 64)
		if err != nil || n < 0 || n >= noLimit { // "max"
			return 0
		}
		return n
	}
	switch {
	case controller == PIDs:
		e.PIDs = number("pids.max")
	case controller == Memory && isV1:
		e.Memory = number("memory.limit_in_bytes")
		if both := number("memory.memsw.limit_in_bytes"); both > 0 && e.Memory > 0 {
			e.Swap = both - e.Memory
		}
	case controller == Memory:
		e.Memory = number("memory.max")
		if n, err := strconv.ParseInt(strings.TrimSpace(read(filepath.Join(dir, "memory.swap.max"))), 10, 64); err == nil {
			e.Swap = n
		}
	case isV1:
		if quota, period := number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"); quota > 0 && period > 0 {
			e.CPUs = float64(quota) / float64(period)
		}
	default:
		f := strings.Fields(read(filepath.Join(dir, "cpu.max")))
		if len(f) == 2 && f[0] != "max" {
			quota, _ := strconv.ParseFloat(f[0], 64)
			period, _ := strconv.ParseFloat(f[1], 64)
			if period > 0 {
				e.CPUs = quota / period
			}
		}
	}
}

// events takes what happened in the group of one controller.
func (e *Enforced) events(dir, controller string, isV1 bool) {
	switch {
	case controller == PIDs:
		e.Full = event(dir, "pids.events", "max")
	case controller == Memory && isV1:
		e.Peak = event(dir, "memory.max_usage_in_bytes", "")
		e.Killed = event(dir, "memory.oom_control", "oom_kill")
	case controller == Memory:
		e.Peak = event(dir, "memory.peak", "")
		e.Killed = event(dir, "memory.events", "oom_kill")
	}
}

// event is a number of a file, of the line with that key; -1: there is none.
func event(dir, file, key string) int64 {
	text := read(filepath.Join(dir, file))
	if key == "" {
		key, text = "n", "n "+text
	}
	n, ok := field(text, key)
	if !ok {
		return -1
	}
	return n
}

// noLimit is where the numbers begin by which version 1 says that there is no limit:
// the largest multiple of a page that fits.
const noLimit = int64(1) << 60
