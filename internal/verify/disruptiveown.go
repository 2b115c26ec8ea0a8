package verify

import (
	"slices"
)

// CopyMachineMemory is what a worker of a copy in a virtual machine has, whose guest gets less
// than the 1G that is tried, and without KVM enough for several probes at once.
const CopyMachineMemory = 640 << 20

// beyondOwn are more processes than a worker of a copy with a kernel of its own may have, and
// on gVisor more than it has threads for: its processes are threads of this machine.
const beyondOwn = 2000

// OwnFill is what was seen of a worker with a kernel of its own that used up its limits.
type OwnFill struct {
	Seen   Seen // [OwnFillProbes]
	Unseen string
	// Memory and Processes is what came of using more than there is, one after the other.
	Memory, Processes Beyond
}

// Beyond is what came of using more than a limit, which may end the worker.
type Beyond struct {
	Seen  Seen
	Ended bool // the worker
	// Before and After are the guard.
	Before, After *Outside
}

// OwnFillProbes use up what a worker with a kernel of its own survives.
func OwnFillProbes() []Probe {
	return slices.DeleteFunc(FillProbes(), func(p Probe) bool { return p.Key == "fill.memory" || p.Key == "fill.processes" })
}

// BeyondProbes use up the memory and the processes of a worker with a kernel of its own, each
// by itself.
func BeyondProbes() (memory, processes []Probe) {
	a, b := &batch{}, &batch{}
	a.add("fill.memory", "memory 1G limit=20s")
	b.add("fill.processes", "processes %d limit=20s", beyondOwn)
	return a.all, b.all
}

// FilledOwn judges what using up its limits did to a worker with a kernel of its own: beyond
// memory and processes it is told so, as in a virtual machine, or that kernel ends, and with it
// the worker alone.
func FilledOwn(worker string, f *OwnFill) Line {
	e := inCopy("B5", worker)
	e.tried("its memory, 200 processes and 4M of /scratch, by 1G, %d processes and 16M", beyondOwn)
	if f.Unseen != "" {
		e.miss("inside: %s", f.Unseen)
	}
	e.works(f.Seen, "control.memory", "8M", "ok")
	e.works(f.Seen, "control.processes", "3 processes", "ok")
	e.works(f.Seen, "control.scratch", "1M in /scratch", "ok")
	e.refused(f.Seen, "full", []string{"ENOSPC"}, "fill.scratch")
	f.Memory.judge(e, "memory", "killed", "exit 1") // a guest's kernel promises no more than it has
	f.Processes.judge(e, "processes", "EAGAIN")
	return e.line()
}

// judge: a limit is one if one of the words says so, or the worker ended; and nobody else did.
func (b *Beyond) judge(e *evidence, what string, words ...string) {
	r, seen := b.Seen["fill."+what]
	switch {
	case b.Ended:
		e.outside(true, "beyond %s the worker ended", what)
	case !seen:
		e.miss("the probe said nothing of %s, and the worker went on", what)
	default:
		e.inside(slices.Contains(words, r.Seen), "%s: %s", what, saw(r))
	}
	if p, q := b.Before.process(e), b.After.process(e); p != nil && q != nil {
		same := p.Status["Pid"] == q.Status["Pid"]
		e.outside(same, "the guard went on after %s: %v", what, same)
	}
}
