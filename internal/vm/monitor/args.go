package monitor

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/vm/config"
)

// Spec is a virtual machine.
type Spec struct {
	Accelerator config.Accelerator
	// Kernel is the file of a kit (package kit).
	Kernel string
	// Initramfs is of [kit.Initrd]; the caller's to close.
	Initramfs *os.File
	// MemoryMiB is the guest's memory. QEMU itself needs more.
	MemoryMiB int
	CPUs      int
	// Root is an image of the worker's root file system, read-only; empty: none.
	Root string
	// Shares are its mounts.
	Shares []Share
	// TSCkHz is the rate of this machine's time stamp counter, which TCG passes on: a guest
	// that measures it may wait forever. Zero: the guest measures it.
	TSCkHz int
	// Relay connects to what dials for the guest ([Outlet]), and is called again when that
	// ended; nil: the guest may dial nothing.
	Relay func(context.Context) (io.ReadWriteCloser, error)
	// Output takes a line of the guest's worker (carrier.Output), and doesn't block; nil: the
	// guest may send none.
	Output func(carrier.Head)
	// Console: the kernel writes what it does to a serial port, which is QEMU's stdout.
	Console bool
}

// Share is a directory that a file server (package files) serves.
type Share struct {
	Tag    string   // its name in the guest
	Socket *os.File // connected to the server, which speaks vhost-user; the caller's to close
}

// emulated are options of a guest's kernel on a processor that is a program
// (Documentation/admin-guide/kernel-parameters.txt of Linux): each instruction is dear, and
// B13 isn't held. Together they are a quarter of its start. A kernel that loads none but signed
// modules doesn't start with them.
var emulated = []string{
	"no_timer_check",
	"tsc=reliable",        // QEMU has one for all processors; without it the clock is the timer's ticks
	"mitigations=off",     // of what the processor doesn't do
	"init_on_alloc=0",     // memory is cleared twice else, for most
	"cryptomgr.notests=1", // of ciphers
	"lsm=landlock",        // which a worker uses; others look at each call
	"initcall_blacklist=" + // tests, and keys that no module is signed by
		"crypto_kdf108_init,load_system_certificate_list",
}

// QEMU's descriptors: the initramfs, the carrier, and then the shares.
const (
	initramfsFD = 3 + iota
	carrierFD
	firstShareFD
)

// Args returns QEMU's arguments, without the program's name. What they leave out isn't in
// the machine: -nodefaults, and no -monitor, -netdev, -display or device on another bus.
func Args(s Spec) []string {
	machine := []string{"microvm", "acpi=on", onOff("isa-serial", s.Console), "memory-backend=mem"}
	command := []string{"panic=-1", "random.trust_cpu=on"}
	cpu := "host"
	if s.Accelerator == config.KVM {
		machine = append(machine, "rtc=off", "pit=off", "pic=off")
	} else {
		cpu = "max" // the clocks stay: the guest has no other
		command = append(command, emulated...)
		if s.TSCkHz > 0 {
			// Else a second processor measures how fast it is, for seconds if others want this one:
			// loops of a delay in a tick, of which most kernels have 250 a second.
			command = append(command, fmt.Sprintf("tsc_early_khz=%d", s.TSCkHz), fmt.Sprintf("lpj=%d", s.TSCkHz*(1000/250)))
		}
	}
	if s.Console {
		command = append(command, "console=ttyS0")
	} else {
		command = append(command, "quiet", "loglevel=3")
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-M", strings.Join(machine, ","), "-accel", string(s.Accelerator), "-cpu", cpu,
		"-smp", fmt.Sprint(s.CPUs), "-m", fmt.Sprint(s.MemoryMiB),
		// Shared, because the file server reads the requests in it.
		"-object", fmt.Sprintf("memory-backend-memfd,id=mem,size=%dM,share=on", s.MemoryMiB),
		// Each request to the root's disk has a thread meanwhile, and a thread counts as a process
		// of the container: 64 of them else.
		"-object", "main-loop,id=loop,thread-pool-max=8",
		"-global", "virtio-mmio.force-legacy=false",
		"-kernel", s.Kernel, "-initrd", fmt.Sprintf("/proc/self/fd/%d", initramfsFD), "-append", strings.Join(append(command, "--", config.Command), " "),
		"-chardev", fmt.Sprintf("socket,id=carrier,fd=%d", carrierFD),
		"-device", "virtio-serial-device,max_ports=2", "-device", "virtserialport,chardev=carrier,name=" + config.Port,
		"-device", "virtio-balloon-device,free-page-reporting=on",
	}
	if s.Root != "" {
		args = append(args, "-drive", "file="+value(s.Root)+",format=raw,if=none,id=root,readonly=on", "-device", "virtio-blk-device,drive=root")
	}
	for i, share := range s.Shares {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=share%d,fd=%d", i, firstShareFD+i),
			"-device", fmt.Sprintf("vhost-user-fs-device,chardev=share%d,tag=%s", i, value(share.Tag)))
	}
	if s.Console {
		args = append(args, "-serial", "stdio")
	}
	return args
}

func onOff(name string, on bool) string {
	if on {
		return name + "=on"
	}
	return name + "=off"
}

// value is a text as the value of a key: QEMU reads a comma as the end of it.
func value(text string) string { return strings.ReplaceAll(text, ",", ",,") }
