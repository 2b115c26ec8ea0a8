package engine

import (
	"slices"

	"github.com/llmdo/workshop/compose"
)

// PlanRollBack plans the rollback of a failed up from the state now towards the
// state before. If a worker ran before, replaced objects stay, and only those that
// are there for the first time, such as a new worker, are removed. If none ran,
// everything new is removed, and what was started is stopped. A room that a container
// which stays has joined stays, too.
func PlanRollBack(c *compose.Compiled, before, now Observed) *Plan {
	pl := newPlanner(Desired{}, now)
	ran := slices.ContainsFunc(before.Containers, func(k Container) bool {
		return c.Roles[k.Service] == compose.RoleWorker && k.State == "running" && !k.OneOff
	})
	var kept []Container
	var removed []int
	for _, k := range dependentsFirst(now.Containers) {
		same := slices.IndexFunc(before.Containers, func(o Container) bool { return o.ID == k.ID })
		replaces := slices.ContainsFunc(before.Containers, func(o Container) bool { return o.Service == k.Service && !o.Helper })
		joined := slices.ContainsFunc(kept, func(o Container) bool { return o.NetworkOf == k.ID })
		switch {
		case same < 0 && !k.OneOff && !joined && !(ran && replaces), same < 0 && k.Helper:
			removed = append(removed, pl.remove(k, "up failed"))
			continue
		case same >= 0 && !ran && k.State == "running" && before.Containers[same].State != "running":
			pl.add(Step{Op: OpStopContainer, Target: "container/" + k.Name, Service: k.Service, ObjectID: k.ID, Cause: "up failed"})
		}
		kept = append(kept, k)
	}
	pl.workersBeforeRooms()
	for _, n := range now.Networks {
		was := slices.ContainsFunc(before.Networks, func(o Object) bool { return o.ID == n.ID })
		used := slices.ContainsFunc(kept, func(k Container) bool { return slices.Contains(k.Networks, n.Name) })
		if !was && !used {
			pl.add(Step{Op: OpRemoveNetwork, Target: "network/" + n.Name, ObjectID: n.ID, Cause: "up failed"}, removed...)
		}
	}
	for _, v := range now.Volumes {
		_, was := find(before.Volumes, v.Name)
		used := slices.ContainsFunc(kept, func(k Container) bool { return uses(c.Project.Services[k.Service], v.Labels[LabelVolume]) })
		if !was && !used {
			pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + v.Name, ObjectID: v.Name, Cause: "up failed"}, removed...)
		}
	}
	return pl.plan
}
