package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// Kernels say how the engine gives workers each kernel other than this machine's: by the first
// of the mechanisms that the user's settings name for it, and that the engine has. A kernel
// that they don't name has all of [compose.Mechanisms].
func (i *Info) Kernels(settings map[workshop.Kernel][]compose.Mechanism) map[workshop.Kernel]compose.KernelFacts {
	out := map[workshop.Kernel]compose.KernelFacts{}
	for _, k := range []workshop.Kernel{workshop.KernelSandboxed, workshop.KernelVM} {
		by, narrowed := settings[k]
		if !narrowed {
			by = compose.Mechanisms(k)
		}
		out[k] = i.kernel(k, by)
	}
	return out
}

func (i *Info) kernel(k workshop.Kernel, by []compose.Mechanism) (f compose.KernelFacts) {
	for _, m := range by {
		has := i.mechanism(m)
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
func (i *Info) mechanism(m compose.Mechanism) compose.KernelFacts {
	if m == compose.MechanismGVisor {
		return i.gvisor()
	}
	return compose.KernelFacts{Why: "no engine gives a worker a virtual machine yet", Do: "write `kernel: sandboxed`, or `kernel: host` if this machine's will do"}
}

func mechanismList(all []compose.Mechanism) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}
