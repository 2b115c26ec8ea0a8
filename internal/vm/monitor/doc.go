// Package monitor runs the virtual machine of a worker: QEMU's microvm, whose only devices
// are those that a guest of ours needs. It has no network card, no PCI, no USB, no display
// and no monitor; what leads out of it is a carrier (package carrier), over a socketpair.
//
// A machine that boots with KVM is what promise B13 holds by; one that is emulated (TCG) is
// for tests, as QEMU gives no security guarantee for it (docs/system/security.rst of QEMU).
//
// It reads what a hostile guest writes.
package monitor
