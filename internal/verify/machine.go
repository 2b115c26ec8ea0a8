package verify

import (
	"slices"
)

// vmName is what the kernel calls the program that runs a virtual machine, qemuName (15 bytes
// of it) the machine, and kvm the device of one in hardware.
const (
	vmName   = "workshop-vm"
	qemuName = "qemu-system-x86"
	kvm      = "kvm"
)

// emulationWaived is why a machine without KVM isn't tested for what it doesn't hold.
const emulationWaived = "not held: waived at `up` by --emulate, and emulation is not a boundary"

// InMachine makes what is seen outside of a virtual machine's container that of its worker:
// the mounts that its guest is served are at the worker's targets.
func (o *Outside) InMachine() {
	if o.Process == nil {
		return
	}
	files := *o.Process
	files.Mounts = slices.Clone(files.Mounts)
	for i := range files.Mounts {
		files.Mounts[i].Target = o.Guest.Target(files.Mounts[i].Target)
	}
	o.Files = &files
}

// machine judges the kernel of a worker in a virtual machine.
func (w *Worker) machine() Line {
	if slices.Contains(w.NotHeld, "B13") {
		return notTested("B13", w.Name, emulationWaived)
	}
	e := w.begin("B13")
	e.tried("the boot id of its kernel; a virtual machine on KVM in its container")
	w.anotherKernel(e, "kernel.boot", "boot id", w.Machine.BootID)
	if p := w.process(e); p != nil {
		machines := slices.DeleteFunc(slices.Clone(p.Below), func(s map[string]string) bool { return s["Name"] != qemuName })
		e.outside(len(machines) == 1, "%d processes below it are %s", len(machines), qemuName)
		e.outside(slices.Contains(p.Devices, kvm), "its devices have %s: %v", kvm, slices.Contains(p.Devices, kvm))
	}
	return e.line()
}

// ownMachine: the machine has the kernel and the network namespace that its worker would have.
func (w *Worker) ownMachine() Line {
	e := about("B30", w.Name)
	e.tried("its main process by this machine's kernel, and its network namespace")
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["Name"] != "", "process %s of this machine's kernel runs its machine", p.Status["Pid"])
		w.inRoom(e, p)
	}
	return e.line()
}
