package compose

import (
	"encoding/json"
	"strings"
	"testing"
)

// Families 0 to 45 are allowed as in Docker's profile but for three, each with
// and without high bits that the kernel ignores.
func TestSocketFamilies(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for family := range uint64(46) {
		want := family != 17 && family != 38 && family != 40
		if got := p.allows("socket", family); got != want {
			t.Errorf("family %d: allowed = %t; want %t", family, got, want)
		}
		if p.allows("socket", family|1<<32) || p.allows("socket", family|1<<63) {
			t.Errorf("family %d is allowed with high bits", family)
		}
	}
}

// All commands of fcntl(2) that kernels have but those by which others wait; the
// high bits mean nothing to the kernel.
func TestLeases(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for command := range uint64(1100) {
		want := command < 1040 && command != 1024
		for _, name := range []string{"fcntl", "fcntl64"} {
			if p.allows(name, 3, command) != want || p.allows(name, 3, command|1<<32) != want {
				t.Errorf("%s %d: want %t", name, command, want)
			}
		}
	}
}

// Priorities, scheduling and limits: of the caller alone. The high bits mean nothing to
// the kernel.
func TestOthersKeepTheirPriority(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for _, c := range othersCalls {
		if p.allows(c.name, c.args...) {
			t.Errorf("%s%v is allowed", c.name, c.args)
		}
	}
	for _, c := range []struct {
		name string
		args []uint64
	}{
		{"prlimit64", []uint64{0, 0, 1}},
		{"prlimit64", []uint64{1, 0, 0}}, // a question
		{"sched_setattr", []uint64{0}},
		{"sched_setparam", []uint64{1 << 32}},
		{"sched_setscheduler", []uint64{0}},
		{"sched_setaffinity", []uint64{1}},
		{"setpriority", []uint64{0, 0, 19}},
		{"ioprio_set", []uint64{1, 0, 3 << 13}},
	} {
		if !p.allows(c.name, c.args...) {
			t.Errorf("%s%v is refused: ordinary programs would fail", c.name, c.args)
		}
	}
}

func TestSyscallListIsClean(t *testing.T) {
	names := seccompNames()
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			t.Errorf("%q stands twice or is no name", n)
		}
		seen[n] = true
	}
	for _, n := range []string{"socket", "clone", "clone3", "socketcall", "fcntl", "mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "ptrace", "personality", "prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler", "setpriority", "ioprio_set"} {
		if seen[n] {
			t.Errorf("%s is allowed whatever its arguments", n)
		}
	}
	for _, n := range []string{"read", "openat", "execve", "futex", "epoll_wait", "statx", "landlock_create_ruleset", "memfd_create", "renameat2"} {
		if !seen[n] {
			t.Errorf("%s is missing: ordinary programs would fail", n)
		}
	}
}
