package compose

import (
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// Mechanism gives workers a kernel other than this machine's.
type Mechanism string

// The mechanisms that are known.
const (
	MechanismGVisor Mechanism = "gvisor" // a kernel in user space
	MechanismVM     Mechanism = "vm"     // a virtual machine
)

// Mechanisms returns those that may give workers a kernel, in the order of preference; none for
// this machine's.
func Mechanisms(k workshop.Kernel) []Mechanism {
	switch k {
	case workshop.KernelSandboxed:
		return []Mechanism{MechanismGVisor, MechanismVM}
	case workshop.KernelVM:
		return []Mechanism{MechanismVM}
	}
	return nil
}

// KernelFacts say how an engine gives workers a kernel of their own.
type KernelFacts struct {
	// Mechanism is empty where it can't: then Why says why not, and Do what to do.
	Mechanism Mechanism
	Runtime   string // the OCI runtime of gVisor
	Why, Do   string
}

// GVisorRuntime is the name under which gVisor's runtime is registered for us, with options
// that no other container gets.
const GVisorRuntime = "workshop-runsc"

const (
	// gvisorMemory is the least memory of a worker on gVisor, in bytes: its kernel and its
	// file server take about 55 MB of it.
	gvisorMemory = 128 << 20
	// A worker on gVisor with n processes needs at most gvisorThreads + gvisorPerProcess × n
	// threads of this machine; beyond its limit it ends.
	gvisorThreads, gvisorPerProcess = 256, 4
)

// GVisorThreads is how many threads of this machine a worker on gVisor may have, of which pids
// processes need at most as many.
func GVisorThreads(pids int64) int64 { return gvisorThreads + gvisorPerProcess*pids }

// NoPlainCompose says why plain Compose can't run a project; empty: it can.
func NoPlainCompose(c *Compiled) string {
	for _, name := range sortedKeys(c.Roles) {
		if w := c.definition(name); w != nil && w.Container.Kernel.V.Own() {
			return fmt.Sprintf("%s has kernel %s, and plain Compose neither waits for its room before it starts it nor sees which kernel it got (B13)", name, w.Container.Kernel.V)
		}
	}
	return ""
}

// readableSuffix ends the name of a tool volume whose program may be read.
const readableSuffix = "-readable"

// IsReadableTools reports whether a tool volume of this name is [ReadableToolsVolume].
func IsReadableTools(name string) bool { return strings.HasSuffix(name, readableSuffix) }

// kernel gives a worker the kernel that it asks for, or refuses it: it never gets this
// machine's instead (B13).
func (m *machine) kernel(s *types.ServiceConfig, a *addition, w *workshop.Worker) {
	k := &w.Container
	if !k.Kernel.V.Own() {
		return
	}
	at := func(of diag.Source) diag.Range {
		if of.Range.Filename == "" { // nobody wrote it
			return w.Source.Range
		}
		return of.Range
	}
	has := m.f.Kernels[k.Kernel.V]
	if has.Mechanism != MechanismGVisor {
		m.list.add("kernel-missing", at(k.Kernel.Source), fmt.Sprintf("%s can't have kernel %s here (B13): %s", w.Name, k.Kernel.V, has.Why), "It never runs on this machine's instead.", has.Do)
		return
	}
	if r := &k.Resources; r.Memory.V < gvisorMemory {
		m.list.add("kernel-memory", at(r.Memory.Source), fmt.Sprintf("%s has %s of memory, and its kernel needs %s (B5)", w.Name, formatSize(int64(r.Memory.V)), formatSize(gvisorMemory)),
			"gVisor itself takes about 55 MB of a worker's memory.", "write `memory: 128M` or more in its resources")
	}
	a.runtime, a.pids = has.Runtime, GVisorThreads(k.Resources.PIDs.V)
	for i := range s.Volumes {
		if s.Volumes[i].Source == ToolsVolume && s.Volumes[i].Type == types.VolumeTypeVolume {
			s.Volumes[i].Source, m.readable = ReadableToolsVolume, true
		}
	}
}
