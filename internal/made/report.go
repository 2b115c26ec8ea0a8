// Package made is what a program of ours says of the container that it runs in, before
// it is ready: what was really made, whatever an engine or a runtime was asked for. The
// host compares it with that (engine.CompareMade).
//
// At that moment nothing of a worker runs, so the report is our own program's. An engine
// that forges it is not caught: it shows what is dropped or changed, not who lies.
package made

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Prefix begins the line of stdout that has the report, before READY.
const Prefix = "MADE "

// MaxLine bounds the line in bytes; a mount has about 60.
const MaxLine = 256 << 10

// Report is what a container is. What can't be read is left out, and so differs from
// what was asked.
type Report struct {
	Kernel
	// Status are the [StatusFields] of /proc/self/status.
	Status map[string]string `json:"status"`
	// Rlimits are soft and hard limits by the names of Compose: "nofile".
	Rlimits map[string][2]uint64 `json:"rlimits"`
	// Limits are those of its control groups; nil: they are not visible in it.
	Limits *Limits `json:"limits,omitempty"`
	// Mounts are those that are reachable.
	Mounts []Mount `json:"mounts"`
	// Unmasked are paths of the kernel that must be hidden, and aren't.
	Unmasked   []string `json:"unmasked,omitempty"`
	Devices    []string `json:"devices"`    // in /dev
	Interfaces []string `json:"interfaces"` // that are up
	// Sockets are the results of opening sockets of families that our seccomp profile
	// refuses, by the family: "EPERM", "ok".
	Sockets map[string]string `json:"sockets"`
}

// Kernel identifies a kernel, and what a process has of it.
type Kernel struct {
	BootID  string `json:"boot_id"` // /proc/sys/kernel/random/boot_id, random(4)
	Version string `json:"version"` // /proc/version
	// UIDMap and GIDMap are the id mappings of the user namespace, lines joined by ", "
	// (user_namespaces(7)).
	UIDMap string `json:"uid_map"`
	GIDMap string `json:"gid_map"`
	// Namespaces by kind: "net" is "net:[4026531840]". A kind that the kernel lacks is
	// left out.
	Namespaces map[string]string `json:"namespaces"`
}

// StatusFields are the fields of /proc/self/status of a report.
var StatusFields = []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"}

// Limits are limits of control groups. Memory and Swap are in bytes, Swap is what may be
// used beyond Memory, -1: any. Zero elsewhere: there is none.
type Limits struct {
	Memory int64   `json:"memory"`
	Swap   int64   `json:"swap"`
	CPUs   float64 `json:"cpus"`
	PIDs   int64   `json:"pids"`
}

// Mount is one mount.
type Mount struct {
	Target   string `json:"at"`
	Type     string `json:"type"`
	ReadOnly bool   `json:"ro,omitempty"`
	NoSetuid bool   `json:"nosuid,omitempty"`
	NoDevice bool   `json:"nodev,omitempty"`
	NoExec   bool   `json:"noexec,omitempty"`
	Size     int64  `json:"size,omitempty"` // of a memory file system, in bytes
	// Device is the name of the machine's device node that is bound there; empty: none is.
	Device string `json:"device,omitempty"`
	// Null: it is /dev/null, which hides a file.
	Null bool `json:"null,omitempty"`
}

// Line is the report as a line of stdout, with its end.
func (r *Report) Line() string {
	b, err := json.Marshal(r)
	if err != nil { // of no value of these types
		b = []byte("{}")
	}
	return Prefix + string(b) + "\n"
}

// Parse reads a line without its prefix.
func Parse(text string) (*Report, error) {
	if len(text) >= MaxLine {
		return nil, fmt.Errorf("longer than %d bytes", MaxLine)
	}
	var r *Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("it is null")
	}
	return r, nil
}
