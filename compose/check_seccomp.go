package compose

import (
	"encoding/json"
	"slices"
)

// seccomp reads the profile as the engine will and asks what it answers (B2).
func (k *checker) seccomp() {
	var p seccompProfile
	if err := json.Unmarshal(k.c.Seccomp, &p); err != nil {
		k.add("B2", "the seccomp profile can't be read: %v", err)
		return
	}
	k.must(p.DefaultAction == actErrno, "B2", "the seccomp profile allows what it does not name")
	for _, a := range p.ArchMap {
		k.must(len(a.SubArchitectures) == 0, "B2", "the seccomp profile lets foreign architectures in")
	}
	for _, family := range []uint64{17, 38, 40} { // AF_PACKET, AF_ALG, AF_VSOCK
		k.must(!p.allows("socket", family) && !p.allows("socket", family|1<<32), "B2", "the seccomp profile allows sockets of family %d", family)
	}
	for _, name := range []string{"bpf", "clone3", "mount", "unshare", "setns", "keyctl", "init_module", "kexec_load", "io_uring_setup", "userfaultfd", "perf_event_open"} {
		k.must(!p.allows(name, 0), "B2", "the seccomp profile allows %s", name)
	}
	for _, command := range []uint64{1024, 1040} { // F_SETLEASE, F_SETDELEG
		k.must(!p.allows("fcntl", 3, command) && !p.allows("fcntl", 3, command|1<<32), "B2", "the seccomp profile allows fcntl command %d", command)
	}
	for _, c := range othersCalls {
		k.must(!p.allows(c.name, c.args...), "B2", "the seccomp profile allows %s for other processes", c.name)
	}
	k.must(!p.allows("clone", 0x10000000), "B2", "the seccomp profile allows user namespaces") // CLONE_NEWUSER
}

// othersCalls set something of process 1, the caller's group, or its user.
var othersCalls = []struct {
	name string
	args []uint64
}{
	{"prlimit64", []uint64{1, 0, 1}},
	{"sched_setattr", []uint64{1}},
	{"sched_setparam", []uint64{1}},
	{"sched_setscheduler", []uint64{1}},
	{"setpriority", []uint64{0, 1}},
	{"setpriority", []uint64{1, 0}},
	{"setpriority", []uint64{2, 0}},
	{"ioprio_set", []uint64{1, 1}},
	{"ioprio_set", []uint64{2, 0}},
	{"ioprio_set", []uint64{3, 0}},
}

// allows reports whether a call with these first arguments is allowed on some
// architecture and kernel.
func (p *seccompProfile) allows(name string, args ...uint64) bool {
	for _, r := range p.Syscalls {
		if r.Action == actAllow && slices.Contains(r.Names, name) && r.matches(args) {
			return true
		}
	}
	return false
}

func (r *seccompRule) matches(args []uint64) bool {
	for _, a := range r.Args {
		if a.Index >= uint(len(args)) {
			continue
		}
		arg := args[a.Index]
		switch a.Op {
		case "SCMP_CMP_EQ":
			if arg != a.Value {
				return false
			}
		case "SCMP_CMP_MASKED_EQ":
			if arg&a.Value != a.ValueTwo {
				return false
			}
		default: // not used by us: it may match
		}
	}
	return true
}
