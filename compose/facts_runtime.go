package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/workshop"
)

// kernelRuntimes are the OCI runtimes that make containers of the machine's
// kernel and its network stack, in which a room's rules work, and add nothing
// to what the specification says. Others, such as gVisor, VM runtimes and
// nvidia's, bring a stack, a kernel or devices of their own (B6, B30).
var kernelRuntimes = []string{"", "runc", "crun", "youki", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"}

// KernelRuntime reports whether an OCI runtime is known to make containers of the
// machine's kernel; empty is the engine's default.
func KernelRuntime(name string) bool { return slices.Contains(kernelRuntimes, name) }

// ownRuntime is what room and guard name where the engine's default runtime isn't known to
// make containers of the machine's kernel (B30); empty: the default.
func (f *Facts) ownRuntime() string {
	if KernelRuntime(f.DefaultRuntime) {
		return ""
	}
	for _, name := range kernelRuntimes {
		if name != "" && slices.Contains(f.Runtimes, name) {
			return name
		}
	}
	return "runc" // of which the engine says that it is missing
}

// runtime refuses what no room holds, what only the user's settings may allow,
// and what the engine would refuse only when room and guard run already. Names
// of shims (io.containerd.…) are found without being registered.
func (m *machine) runtime(w *workshop.Worker, room string) {
	r := w.Container.Runtime
	at, which := r.Source.Range, "runtime "+r.V
	if r.V == "" {
		at, which = w.Source.Range, "the engine's default runtime "+m.f.DefaultRuntime
	}
	name := cmp.Or(r.V, m.f.DefaultRuntime)
	switch {
	case KernelRuntime(name):
	case room != "":
		m.list.add("runtime-network", at, which+" is not known to work with a room (B30)",
			"It may bring a network stack of its own, which a room's rules do not reach.", "use `runtime: runc` or `network: none`")
		return
	case !slices.Contains(m.f.UserRuntimes, name):
		m.list.add("runtime-unknown", at, which+" is not known to keep to the machine's kernel and to add no devices (B6, B30)",
			"A variable of the file or of an image can decide what it adds.", fmt.Sprintf("use `runtime: runc`, or write `runtimes: [%s]` in your settings file", name))
		return
	}
	if r.V != "" && len(m.f.Runtimes) > 0 && !slices.Contains(m.f.Runtimes, r.V) && !strings.HasPrefix(r.V, "io.containerd.") {
		m.list.add("runtime-missing", at, fmt.Sprintf("the engine has no runtime %s", r.V),
			"It has "+strings.Join(m.f.Runtimes, ", ")+".", "add it to the engine's configuration (`runtimes` of daemon.json), or remove the line")
	}
}
