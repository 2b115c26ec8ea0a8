package app

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
)

// sayOwnKernels says what is held differently for workers with a kernel of their own that the
// plan starts.
func (env *Env) sayOwnKernels(plan *engine.Plan) {
	var workers, machines []string
	emulated := false
	for _, s := range plan.Steps {
		if m := plan.Compiled.Machine(s.Service); m != nil && s.Op == engine.OpStartContainer {
			machines, emulated = appendNew(machines, s.Service), emulated || m.Emulated
		}
		own := plan.Compiled.Roles[s.Service] == compose.RoleWorker && plan.Compiled.Project.Services[s.Service].Runtime == compose.GVisorRuntime
		if s.Op == engine.OpStartContainer && own {
			workers = appendNew(workers, s.Service)
		}
	}
	for _, x := range []struct {
		workers    []string
		where, who string
	}{{workers, "the kernel is gVisor's, on which", promise.GVisor}, {machines, "in a virtual machine, which is a preview, and in which", promise.VM}} {
		if len(x.workers) > 0 {
			slices.Sort(x.workers)
			env.say("%s: %s these are held differently: %s; `workshop explain B28` and the others say how",
				WorkersText(x.workers), x.where, strings.Join(promise.Differently(x.who), ", "))
		}
	}
	if emulated {
		env.warn("%s: emulated, without KVM: emulation is not a boundary (B13 is not held)", WorkersText(machines))
	}
}

// hasOwnKernel reports whether a worker's file asks for another kernel than this machine's.
func (c *Project) hasOwnKernel(worker string) bool {
	if c.Workshop == nil {
		return false
	}
	w := c.Worker(worker)
	return w != nil && w.Container.Kernel.V.Own()
}

// carriedOf are the workers of which an outlet connects for them, as their kernel is their own.
func carriedOf(seen engine.Observed) (workers []string) {
	rooms := map[string]bool{}
	for _, c := range seen.Containers {
		if c.Role == compose.RoleOutlet.String() && c.NetworkOf != "" {
			rooms[c.NetworkOf] = true
		}
	}
	for _, c := range seen.Containers {
		if c.Role == compose.RoleWorker.String() && rooms[c.NetworkOf] {
			workers = append(workers, c.Service)
		}
	}
	slices.Sort(workers)
	return workers
}

// UntoldText says which refusals no guard hears of; empty: it hears of all. worker limits it to
// one; empty: all.
func UntoldText(seen engine.Observed, worker string) string {
	workers := carriedOf(seen)
	if worker != "" {
		workers = slices.DeleteFunc(workers, func(w string) bool { return w != worker })
	}
	if len(workers) == 0 {
		return ""
	}
	return WorkersText(workers) + ": its own kernel refuses ports that no line names, untold but for those of well-known services (B28)"
}
