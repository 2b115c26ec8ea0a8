package cgroup

import (
	"fmt"
	"strings"
)

// Limit is what a group may use. A zero field means no limit, except for SwapBytes.
type Limit struct {
	MemoryBytes int64   // of memory, page cache and tmpfs together; the kernel rounds down to whole pages
	SwapBytes   int64   // beyond the memory; 0: none. Without meaning when MemoryBytes is 0
	CPUs        float64 // of processor time; 0.5 is half of one
	PIDs        int64   // processes and threads
}

// The limits by name, as errors and Limits.Why have them.
const (
	Memory = "memory"
	Swap   = "swap"
	CPU    = "cpu"
	PIDs   = "pids"
)

// Limits are the limits that can be enforced.
type Limits struct {
	Memory, Swap, CPU, PIDs bool
	// Why has the reason for each that can't, by its name.
	Why map[string]string
}

// Missing is a limit that can't be enforced.
type Missing struct {
	Limit string // Memory, Swap, CPU or PIDs
	Why   string
}

// Unavailable means that some limits can't be enforced in this process's groups.
type Unavailable struct {
	Missing []Missing // never empty, in the order memory, swap, cpu, pids
	// Do is a hint: sentences, perhaps with a command.
	Do string
}

func (u *Unavailable) Error() string {
	var b strings.Builder
	b.WriteString("limits can't be enforced here (B5): ")
	for i, m := range u.Missing {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", m.Limit, m.Why)
	}
	return b.String() + ". " + u.Do
}

// without is the hint that always applies.
const without = "To run without limits, so that a worker can use up the machine: `workshop up --without-limits`"

func (l Limits) missing() []Missing {
	var list []Missing
	for _, c := range []struct {
		name string
		ok   bool
	}{{Memory, l.Memory}, {Swap, l.Swap}, {CPU, l.CPU}, {PIDs, l.PIDs}} {
		if !c.ok {
			list = append(list, Missing{c.name, l.Why[c.name]})
		}
	}
	return list
}

// Mount is one of the mounts, in order, by which a container sees only its own group.
type Mount struct {
	Type    string // tmpfs, cgroup or cgroup2
	Options string // of the file system: "memory", "cpu,cpuacct", "mode=755"
	Target  string // absolute path in the container
}

// ValidName returns an error unless a name is valid for a group: one path element that
// can't be a file of a control group. Those have a dot in their names, or are refused by
// the kernel as existing.
func ValidName(name string) error {
	if name == "" || len(name) > 200 {
		return fmt.Errorf("cgroup: a group's name has 1 to 200 characters, this one has %d", len(name))
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return fmt.Errorf("cgroup: %q is not a valid group name: use letters, digits, - and _, beginning with a letter or digit", name)
		}
	}
	return nil
}
