package compose

import (
	"fmt"
	"path"
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
	Runtime   string   // the OCI runtime of gVisor
	VM        *VMFacts // of a virtual machine
	Why, Do   string
}

// VMFacts are what virtual machines of workers are made of on this machine.
type VMFacts struct {
	Program       string // file of workshop-vm
	ProgramSHA256 string // hexadecimal, as all hashes here
	// Kit is a directory with the guest's kernel, whose name is the kit's hash.
	Kit string
	// QEMU are the files that it consists of, by absolute paths.
	QEMU                    []string
	QEMUVersion, QEMUSHA256 string
	// Emulated: without KVM, which doesn't hold B13.
	Emulated bool
}

// label is the value of [LabelMachine].
func (f *VMFacts) label() string {
	by := "kvm"
	if f.Emulated {
		by = emulatedLabel
	}
	return fmt.Sprintf("%s kit=%s qemu=%s/%s program=%s", by, path.Base(f.Kit), f.QEMUVersion, f.QEMUSHA256, f.ProgramSHA256)
}

const emulatedLabel = "tcg"

// IsEmulated reports whether a container with this [LabelMachine] is a virtual machine
// without KVM, which doesn't hold B13.
func IsEmulated(label string) bool {
	by, _, _ := strings.Cut(label, " ")
	return label != "" && by != "kvm"
}

// Machine are the facts of the virtual machine that a service is; nil: it is none.
func (c *Compiled) Machine(service string) *VMFacts {
	w := c.definition(service)
	if c.Roles[service] != RoleWorker || w == nil || !w.Container.Kernel.V.Own() || c.Facts == nil {
		return nil
	}
	return c.Facts.Kernels[w.Container.Kernel.V].VM
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

// VMOverhead is what of a worker's memory its virtual machine itself takes, in bytes: QEMU, and
// the file server, which gets more with the memory. The guest has the rest.
func VMOverhead(memory int64, emulated bool) int64 {
	if emulated {
		return 200<<20 + vmFiles(memory)
	}
	return 64<<20 + vmFiles(memory)
}

// vmFiles is what of it is for the files that the guest knows.
func vmFiles(memory int64) int64 { return min(memory/16, 96<<20) }

// VMThreads are the threads that what holds a virtual machine may have.
const VMThreads = 64

// VMNodes is how many files the guest of a worker with as much memory may know at once: one
// takes at most a kilobyte in the file server.
func VMNodes(memory int64) int64 { return vmFiles(memory) / 1024 }

// vmMemory is the least memory of a worker in a virtual machine, in bytes.
func vmMemory(emulated bool) int64 {
	if emulated {
		return 384 << 20
	}
	return 192 << 20
}

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
	switch {
	case has.Mechanism == MechanismGVisor:
		m.kernelMemory(w, at(k.Resources.Memory.Source), gvisorMemory, "gVisor itself takes about 55 MB")
		a.runtime, a.pids = has.Runtime, GVisorThreads(k.Resources.PIDs.V)
		for i := range s.Volumes {
			if s.Volumes[i].Source == ToolsVolume && s.Volumes[i].Type == types.VolumeTypeVolume {
				s.Volumes[i].Source, m.readable = ReadableToolsVolume, true
			}
		}
	case has.Mechanism == MechanismVM && has.VM != nil:
		m.kernelMemory(w, at(k.Resources.Memory.Source), vmMemory(has.VM.Emulated), fmt.Sprintf("The virtual machine itself takes %s", formatSize(VMOverhead(vmMemory(has.VM.Emulated), has.VM.Emulated))))
		a.labels[LabelMachine] = has.VM.label()
		for i := range k.Mounts {
			if mount := &k.Mounts[i]; mount.AllowSockets {
				m.list.add("kernel-sockets", at(mount.At), fmt.Sprintf("%s has kernel %s, a virtual machine, into which no socket of %s reaches", w.Name, k.Kernel.V, mount.Source.V),
					"A unix socket connects programs of one kernel.", "remove `sockets: allow`, or write `kernel: host`")
			}
		}
	default:
		m.list.add("kernel-missing", at(k.Kernel.Source), fmt.Sprintf("%s can't have kernel %s here (B13): %s", w.Name, k.Kernel.V, has.Why), "It never runs on this machine's instead.", has.Do)
	}
}

// kernelMemory demands that a worker has as much memory as its own kernel needs.
func (m *machine) kernelMemory(w *workshop.Worker, at diag.Range, least int64, takes string) {
	if has := int64(w.Container.Resources.Memory.V); has < least {
		m.list.add("kernel-memory", at, fmt.Sprintf("%s has %s of memory, and its kernel needs %s (B5)", w.Name, formatSize(has), formatSize(least)),
			takes+" of a worker's memory.", "write `memory: "+strings.ToUpper(formatSize(least))+"` or more in its resources")
	}
}
