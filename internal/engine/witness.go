package engine

import (
	"io"
	"net/netip"
	"path"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Witness is what the machine and the engine know of a running container by
// themselves, whatever a process in it says.
type Witness struct {
	// PID is the main process, in the caller's PID namespace; 0: this machine doesn't
	// show it, as where the engine is elsewhere.
	PID int
	// Hold keeps the PID from being reused, until it is closed; nil: nothing does.
	Hold io.Closer
	// Env has KEY=VALUE of the container's configuration.
	Env []string
	// Published are the host's addresses at which its ports are published.
	Published []string // "127.0.0.1:8080"
	// Links are the bridges that it is connected to; none: it has the machine's network,
	// or no network at all.
	Links []Link
	// Restart is the restart policy: "no", "unless-stopped".
	Restart string
	// LogBounded: what the container prints is kept up to a size.
	LogBounded bool
	// NoSetuid: the engine makes every mount of its containers nosuid and nodev.
	NoSetuid bool
	// Binds are the host's paths that are mounted, by target.
	Binds map[string]string
	// Guest are, of a worker in a virtual machine, the targets of its mounts by their places in
	// the container that the process is of; Env and Binds are then the worker's. nil: it is in none.
	Guest Guest
	// Text is all that the engine says of the container, for searching.
	Text string
	// Settings are those of an engine that others configure too; nil: the kernel
	// shows all there is.
	Settings *Settings
}

// Link is one connection of a container to a bridge of the engine's machine.
type Link struct {
	Bridge       string     // the interface
	Addr4, Addr6 netip.Addr // of the container; the zero Addr: it has none
}

// Guest are targets in a virtual machine by their places in its container.
type Guest map[string]string

// Target is where a worker in the machine has what is at a place; that place itself: the
// worker has it nowhere, or something else in its place.
func (g Guest) Target(place string) string {
	for at, target := range g {
		rest, in := subpath.Below(place, at)
		if !in {
			continue
		}
		is := path.Join(target, rest)
		for _, other := range g {
			if len(other) > len(target) && subpath.Within(is, other) {
				return place
			}
		}
		return is
	}
	return place
}

// Settings are the isolation settings of a container as the engine reports them.
type Settings struct {
	Privileged      bool
	CapAdd, CapDrop []string
	Security        []string // options, the seccomp profile shortened to its length
	ReadOnly        bool     // the root file system
	User            string
	Memory, Swap    int64 // bytes; Swap is memory and swap together, as Docker has it
	CPUs            float64
	PIDs            int64
	// Namespaces by kind: "private", "host", "container:ID", "none".
	Namespaces map[string]string
	Devices    []string
	Runtime    string
	// Main is the main process with its arguments.
	Main []string
}

// Close releases the PID.
func (w *Witness) Close() {
	if w.Hold != nil {
		w.Hold.Close()
	}
}
