//go:build linux

package cgroup

import (
	"os"
	"slices"
	"testing"
)

// TestEnforced reads the limits of this process: which, is the machine's, but it is a
// member of its groups.
func TestEnforced(t *testing.T) {
	e, err := EnforcedOn(os.Getpid())
	if err != nil {
		t.Skipf("no control groups are visible here: %v", err)
	}
	if !e.Member {
		t.Error("this process isn't a member of its own groups")
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	e.Peak, e.Killed, e.Full, e.Member = -1, -1, -1, true
	if l, err := LimitsOn(os.Getpid(), string(mountinfo)); err != nil || l != e {
		t.Errorf("the limits alone are %+v, %v; want %+v", l, err, e)
	}
	if all, err := Members(os.Getpid()); err == nil && !slices.Contains(all, os.Getpid()) {
		t.Errorf("this process isn't among %v", all)
	}
	if _, err := EnforcedOn(1 << 30); err == nil {
		t.Error("a process that doesn't exist has limits")
	}
}

func TestEnforcedFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"memory.peak": "4096\n", "memory.events": "low 0\noom 1\noom_kill 2\n", "pids.events": "max 3\n", "memory.max_usage_in_bytes": "8192\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		"memory.max":         "1048576\n", "memory.swap.max": "0\n", "cpu.max": "50000 100000\n", "pids.max": "64\n",
		"memory.limit_in_bytes": "2097152\n", "memory.memsw.limit_in_bytes": "3145728\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v2 := Enforced{Swap: -1}
	for _, c := range wanted {
		v2.read(dir, c, false)
		v2.events(dir, c, false)
	}
	if want := (Enforced{Memory: 1 << 20, CPUs: 0.5, PIDs: 64, Peak: 4096, Killed: 2, Full: 3}); v2 != want {
		t.Errorf("version 2: %+v, want %+v", v2, want)
	}
	v1 := Enforced{Swap: -1}
	for _, c := range wanted {
		v1.read(dir, c, true)
		v1.events(dir, c, true)
	}
	if want := (Enforced{Memory: 2 << 20, Swap: 1 << 20, PIDs: 64, Peak: 8192, Killed: 5, Full: 3}); v1 != want {
		t.Errorf("version 1: %+v, want %+v", v1, want)
	}
	none := Enforced{Swap: -1}
	for _, c := range wanted {
		none.read(t.TempDir(), c, false)
		none.events(t.TempDir(), c, false)
	}
	if want := (Enforced{Swap: -1, Peak: -1, Killed: -1, Full: -1}); none != want {
		t.Errorf("no files: %+v", none)
	}
}
