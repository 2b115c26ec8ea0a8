package workshop

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// Kernel is the kernel that a worker's programs run on (B13).
type Kernel string

// The kernels, each one keeping a worker farther from this machine than those before.
const (
	KernelHost      Kernel = "host"      // this machine's; also the zero value
	KernelSandboxed Kernel = "sandboxed" // one in user space, or a virtual machine's
	KernelVM        Kernel = "vm"        // a virtual machine's
)

var kernels = []Kernel{KernelHost, KernelSandboxed, KernelVM}

// Own reports whether it is another one than this machine's.
func (k Kernel) Own() bool { return k.rank() > 0 }

// AtLeast reports whether it keeps a worker as far from this machine as other does.
func (k Kernel) AtLeast(other Kernel) bool { return k.rank() >= other.rank() }

func (k Kernel) rank() int { return max(0, slices.Index(kernels, k)) }

// OwnRoom reports whether the worker shares its room with nobody: the file says so, or its
// kernel isn't this machine's, whose loopback is another one.
func (c *Container) OwnRoom() bool { return c.Network.OwnRoom.V || c.Kernel.V.Own() }

// kernelExcess: a kernel nearer to this machine than the outer container's.
func kernelExcess(inner, outer *Container) []excess {
	have, most := inner.Kernel, outer.Kernel
	if have.V.AtLeast(most.V) {
		return nil
	}
	return []excess{{key: "kernel", at: sourceOr(have.Source, inner.Source), grant: most.Source.Range, have: string(have.V), granted: string(most.V),
		summary: fmt.Sprintf("kernel %s is less than the workshop's %s", have.V, most.V), hint: fmt.Sprintf("write kernel: %s, or lower it in the workshop's container", most.V)}}
}

// checkKernels reports what a worker with a kernel of its own can't have.
func checkKernels(w *Workshop, p *problems) {
	told := map[diag.Range]bool{} // a line of the workshop's is all workers'
	for i := range w.Workers {
		wk := &w.Workers[i]
		k := wk.Container.Kernel
		if !k.V.Own() {
			continue
		}
		bad := func(at diag.Source, what, hint string) {
			if told[sourceOr(at, wk.Source)] {
				return
			}
			told[sourceOr(at, wk.Source)] = true
			p.add(diag.Diagnostic{Severity: diag.Error, Code: "kernel-conflict", Range: sourceOr(at, wk.Source),
				Summary: fmt.Sprintf("%s has kernel %s: %s", wk.Name, k.V, what), Hint: hint,
				Related: []diag.Related{{Message: "its kernel", Range: sourceOr(k.Source, wk.Source)}}})
		}
		n := &wk.Container.Network
		if n.OwnRoom.Source.Range.Filename != "" && !n.OwnRoom.V && n.Mode.V != firewall.None {
			bad(n.OwnRoom.Source, "its loopback is its own, so it can't share a room", "remove `room: shared`")
		}
		if r := wk.Container.Runtime; r.V != "" {
			bad(r.Source, "which runtime makes it is the engine's to say", "remove `runtime`, or write `kernel: host`")
		}
		if len(n.Agents) > 0 {
			bad(n.Agents[0].Source, "it can't reach a socket of this machine, so it has no ssh-agent (B33)", "write `agents: []` for it")
		}
		if n.Mode.V == firewall.Open {
			bad(sourceOf(n), "with `open` any port may be dialled, and only a list of ports is carried to it (B28)", "write `mode: restricted` and what it may reach")
		}
		carried := firewall.RedirectPorts(firewall.RoomPolicy{Allow: n.Allow})
		if have := firewall.CountPorts(carried); have > firewall.MaxCarriedPorts {
			bad(sourceOf(n), fmt.Sprintf("its network has %d ports besides 80 and 443, and at most %d are carried to it (B28)", have, firewall.MaxCarriedPorts), "allow fewer ports")
		}
		for _, p := range wk.Container.Ports {
			if firewall.HasPort(carried, p.Target.V) {
				bad(p.Target.Source, fmt.Sprintf("port %d is one that its network allows, which is carried out of it, so it can't listen there", p.Target.V), "let it listen on another port, and publish that one")
			}
		}
	}
}

func sourceOf(n *Network) diag.Source {
	if n.Mode.Source.Range.Filename != "" {
		return n.Mode.Source
	}
	return n.Source
}
