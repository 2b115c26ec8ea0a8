// Package guest is PID 1 of a worker's virtual machine: it loads the kernel's modules, opens
// the carrier (package carrier), is the relay of what the worker dials, and says that it is
// ready. The machine has no network card; the carrier is all that leads out of it. When it
// ends, the machine is powered off.
//
// Nobody believes it: a worker may own this kernel. What holds the worker is outside.
package guest

// Command is the command of workshop-init that a guest's kernel starts.
const Command = "guest"

// Port is the name of the virtio port that is the carrier.
const Port = "workshop"

// Modules is where the initramfs has the kernel's modules, whose names are in the order in
// which they are loaded.
const Modules = "/modules"
