//go:build linux

package scenario

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Limits are those of the control groups that a process is in. Zero is none.
type Limits struct {
	Memory int64 // bytes
	Swap   int64 // bytes beyond memory; -1: no limit
	CPUs   float64
	Pids   int64
}

// Limits reads what the kernel enforces on a service's main process: cgroup
// version 2 or 1, whoever set it (cgroups(7)).
func (s *Scenario) Limits(service string) (l Limits) {
	s.Helper()
	l.Swap = -1
	for line := range strings.Lines(s.proc(service, "cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "" {
			dir := filepath.Join("/sys/fs/cgroup", f[2])
			if quota, period, ok := strings.Cut(value(dir, "cpu.max"), " "); ok && quota != "max" {
				l.CPUs = number(quota) / number(period)
			}
			l.set(&l.Memory, value(dir, "memory.max"))
			l.set(&l.Pids, value(dir, "pids.max"))
			if v := value(dir, "memory.swap.max"); v != "" && v != "max" {
				l.Swap = int64(number(v))
			}
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			dir := filepath.Join("/sys/fs/cgroup", controller, f[2])
			switch controller {
			case "memory":
				l.set(&l.Memory, value(dir, "memory.limit_in_bytes"))
				if v := value(dir, "memory.memsw.limit_in_bytes"); v != "" && l.Memory > 0 {
					l.Swap = int64(number(v)) - l.Memory
				}
			case "cpu":
				if quota := number(value(dir, "cpu.cfs_quota_us")); quota > 0 {
					l.CPUs = quota / number(value(dir, "cpu.cfs_period_us"))
				}
			case "pids":
				l.set(&l.Pids, value(dir, "pids.max"))
			}
		}
	}
	return l
}

// UseUpMemory lowers the memory limit of a service to what it uses, so that the kernel refuses
// it another page, or kills. The function that it returns restores the limit.
func (s *Scenario) UseUpMemory(service string) (restore func()) {
	s.Helper()
	dir, used, limit := "", "memory.current", "memory.max"
	for line := range strings.Lines(s.proc(service, "cgroup")) {
		switch f := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(f) == 3 && f[1] == "memory":
			dir, used, limit = filepath.Join("/sys/fs/cgroup/memory", f[2]), "memory.usage_in_bytes", "memory.limit_in_bytes"
		case len(f) == 3 && f[1] == "" && dir == "":
			dir = filepath.Join("/sys/fs/cgroup", f[2])
		}
	}
	before := ""
	s.Eventually(service+" is idle", func() bool {
		now := value(dir, used)
		defer func() { before = now }()
		time.Sleep(300 * time.Millisecond)
		return now == before
	})
	was := value(dir, limit)
	set := func(to string) error { return os.WriteFile(filepath.Join(dir, limit), []byte(to), 0) }
	// Again and again: the kernel charges ahead, and gives that back at a new limit.
	for end := time.Now().Add(time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := set(value(dir, used)) // it may have more by now
		if time.Now().Before(end) {
			continue
		}
		s.must(err)
		break
	}
	return func() { s.must(set(was)) }
}

// set takes a limit over; version 1 says "none" by a number near 2^63.
func (*Limits) set(to *int64, v string) {
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && n < 1<<60 {
		*to = n
	}
}

func value(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(b))
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}
