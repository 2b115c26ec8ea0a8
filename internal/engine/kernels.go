package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// Kernel says how the engine gives workers a kernel other than this machine's: by the first
// of the mechanisms that the user's settings name for it, and that the engine has. A kernel
// that they don't name has all of [compose.Mechanisms]. machines says how this machine makes
// virtual machines, and is asked only where they may be needed.
func (i *Info) Kernel(k workshop.Kernel, settings map[workshop.Kernel][]compose.Mechanism, machines func() compose.KernelFacts) (f compose.KernelFacts) {
	by, narrowed := settings[k]
	if !narrowed {
		by = compose.Mechanisms(k)
	}
	for _, m := range by {
		has := i.mechanism(m, machines)
		if has.Mechanism != "" {
			return has
		}
		if f.Why == "" {
			f = has
		}
	}
	all := compose.Mechanisms(k)
	if slices.ContainsFunc(all, func(m compose.Mechanism) bool { return !slices.Contains(by, m) }) {
		f.Why = strings.TrimPrefix(f.Why+", and your settings", ", and ") + fmt.Sprintf(" have `kernels: {%s: [%s]}`", k, mechanismList(by))
		f.Do = fmt.Sprintf("write `kernels: {%s: [%s]}` in your settings file", k, mechanismList(all))
	}
	return f
}

// mechanism says whether the engine has one.
func (i *Info) mechanism(m compose.Mechanism, machines func() compose.KernelFacts) compose.KernelFacts {
	switch {
	case m == compose.MechanismGVisor:
		return i.gvisor()
	case i.Kind != promise.Namespace:
		return compose.KernelFacts{Why: "this engine gives no worker a virtual machine", Do: UseNamespaces}
	case i.Arch != "amd64":
		return compose.KernelFacts{Why: "virtual machines are there for amd64 alone, not for " + i.Arch, Do: "write `kernel: sandboxed`, or `kernel: host` if this machine's will do"}
	}
	return machines()
}

// UseNamespaces is what to do on an engine that has no virtual machines.
const UseNamespaces = "use namespaces: `--engine namespace`"

func mechanismList(all []compose.Mechanism) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}
