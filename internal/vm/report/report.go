// Package report is what workshop-vm prints, one JSON object, and the host programs read:
// they link no more of virtual machines.
package report

import "time"

// KitVersion is the format of a kit. One of another version is made again.
const KitVersion = 2

// KitFile is the name of a kit's description, a [Kit] as JSON, in its directory, whose name is
// the SHA-256 of it in hexadecimal.
const KitFile = "kit.json"

// Kit describes a kit: what a virtual machine boots.
type Kit struct {
	Version int    `json:"version"`
	Arch    string `json:"arch"` // as Go has it: amd64
	Kernel  Kernel `json:"kernel"`
	// Modules are in the order in which they are loaded.
	Modules   []string `json:"modules"`
	Vmlinux   File     `json:"vmlinux"`
	Initramfs File     `json:"initramfs"`
}

// Kernel says which kernel a kit has.
type Kernel struct {
	// Release is what uname -r prints.
	Release string `json:"release"`
	// Build is what uname -v prints; distributions put their package's version into it.
	Build string `json:"build"`
	// Date is the day on which it was built; zero: Build doesn't say.
	Date time.Time `json:"date,omitzero"`
	// Package is the name of its distribution's package; empty: its tree doesn't say.
	Package string `json:"package,omitempty"`
}

// File is a file of a kit.
type File struct {
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal
}

// QEMU is the one of this machine.
type QEMU struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	// Files are those that it consists of, by absolute paths, and Size is their size in bytes.
	Files  []string `json:"files"`
	Size   int64    `json:"size"`
	SHA256 string   `json:"sha256"` // of all of them, hexadecimal
}

// Answer is what a command of workshop-vm found, as far as it came.
type Answer struct {
	// Problem is why it failed; empty: it didn't.
	Problem string `json:"problem,omitempty"`
	// Refused: the machine can't keep B13.
	Refused bool `json:"refused,omitempty"`
	// Hint is what a person can do about it, and Root a line to run as root.
	Hint string `json:"hint,omitempty"`
	Root string `json:"root,omitempty"`
	// Dir is the directory of the kit.
	Dir  string `json:"dir,omitempty"`
	Kit  *Kit   `json:"kit,omitempty"`
	QEMU *QEMU  `json:"qemu,omitempty"`
	// Ready is the time from the start of a guest to its word that it is ready; zero: none was.
	Ready time.Duration `json:"ready,omitempty"`
}
