// Package config is what the engine tells workshop-vm about the machine of a worker, and what
// that tells the guest. It is pure data, as JSON between programs; an unknown key is an error.
package config

import "github.com/llmdo/workshop/internal/engine/namespace/container/spec"

// Accelerator is what runs a machine's processor.
type Accelerator string

// The accelerators. TCG is emulation: no boundary (B13).
const (
	KVM Accelerator = "kvm"
	TCG Accelerator = "tcg"
)

// Machine is the virtual machine of one worker: `workshop-vm run` reads it. Its paths are
// those of the container in which that runs.
type Machine struct {
	Accelerator Accelerator `json:"accelerator"`
	// Kit is a directory with the kernel and its modules (package kit).
	Kit string `json:"kit"`
	// Init is the file of workshop-init, the guest's first program.
	Init string `json:"init"`
	// Root is the file of an EROFS image (package root), the lower layer of the worker's
	// root; empty: the root has what is mounted, and nothing else.
	Root string `json:"root,omitempty"`
	// MemoryMiB is the guest's memory. QEMU and the file server need more.
	MemoryMiB int `json:"memory_mib"`
	CPUs      int `json:"cpus"`
	// Shares are directories that the guest may use.
	Shares []Share `json:"shares,omitempty"`
	// Nodes is how many of their files the guest may know at once; zero: the file server's
	// default.
	Nodes int64 `json:"nodes,omitempty"`
	// Outlet is the socket of the outlet in the worker's room; empty: the guest has no
	// network.
	Outlet string `json:"outlet,omitempty"`
	Guest  Guest  `json:"guest"`
}

// Share is a directory that the file server serves.
type Share struct {
	Tag string `json:"tag"` // its name in the guest
	Dir string `json:"dir"`
	// ReadOnly refuses changes. What is mounted there is read-only, too.
	ReadOnly bool `json:"read_only,omitempty"`
}

// Guest is what the guest's PID 1 makes: the worker, as a container of the guest's kernel.
// What holds the worker is outside; this is what it would have on the machine's kernel.
type Guest struct {
	// Shares are the tags of the machine's shares, which are mounted at SharesDir/TAG.
	Shares []string `json:"shares,omitempty"`
	// Nodes is that of the machine: the guest forgets files before it knows as many.
	Nodes int64 `json:"nodes,omitempty"`
	// Container has its root at RootDir if the machine has an image, and the sources of its
	// binds below SharesDir, or [Init]. Its network is the guest's, whatever it says; its limits
	// of memory (as far as the guest has so much) and of processes are kept in the guest. Its
	// dial-in directory isn't among its mounts, as the guest makes one.
	Container spec.Container `json:"container"`
}

// Names and places in a guest.
const (
	// Command is the command of workshop-init that a guest's kernel starts.
	Command = "guest"
	// Port is the name of the virtio port that is the carrier.
	Port = "workshop"
	// Modules is where the initramfs has the kernel's modules, whose names are in the order
	// in which they are loaded.
	Modules = "/modules"
	// Init is workshop-init in the initramfs.
	Init = "/init"
	// File is this configuration, a [Guest], in the initramfs. Without it the guest is only
	// booted, and says that it is ready.
	File = "/guest.json"
	// SharesDir and RootDir are where shares and the image are mounted.
	SharesDir = "/shares"
	RootDir   = "/root"
)
