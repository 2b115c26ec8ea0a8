// Package monitor runs the virtual machine of a worker: QEMU's microvm, whose only devices
// are those that a guest of ours needs. It has no network card, no PCI, no USB, no display
// and no monitor; what leads out of it is a carrier (package carrier), over a socketpair.
//
// A machine that boots with KVM is what promise B13 holds by; one that is emulated (TCG) is
// for tests, as QEMU gives no security guarantee for it (docs/system/security.rst of QEMU).
//
// In a worker's container the monitor is PID 1 ([Run]). It starts QEMU and the file server,
// each with what it needs alone, and passes on what the guest's carrier has: streams to the
// outlet in the worker's room, sessions from the dial-in directory, lines to its own streams.
// Any of them that ends, ends the container.
//
// It reads what a hostile guest writes.
package monitor
