package engine

import (
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

// policyChanged reports whether the guard would start with a policy other than the
// desired one. An unreadable policy counts as changed.
func (pl *planner) policyChanged() bool {
	return pl.c.Policy != nil && pl.o.PolicyDigest != firewall.Digest(pl.c.Policy)
}

// startsWithOldPolicy reports whether a stopped guard is started whose volume has
// another policy, and so must be filled first.
func (pl *planner) startsWithOldPolicy(decisions map[string]decision) bool {
	for _, service := range pl.services(compose.RoleGuard) {
		if decisions[service].action == start && pl.policyChanged() {
			return true
		}
	}
	return false
}

// allRemoved returns the steps that remove containers. The guard gets a new policy
// after them: a worker that moves to another room must not use new lines of its old
// room (B40).
func (pl *planner) allRemoved() []int {
	var ids []int
	for _, c := range pl.o.Containers {
		ids = append(ids, pl.removed[c.ID])
	}
	return ids
}

// reloadPolicy sends a guard that stays the new policy: connections that it still
// allows continue, the others are reset (B27), and no worker is touched.
//
// Every start waits for this step, so that the new policy applies from the first
// packet.
func (pl *planner) reloadPolicy(decisions map[string]decision) {
	for _, service := range pl.services(compose.RoleGuard) {
		if decisions[service].action != keep || !pl.policyChanged() {
			continue
		}
		after := append([]int{pl.init}, pl.barrier...)
		after = append(after, pl.allRemoved()...)
		pl.reload = pl.add(Step{
			Op: OpReloadPolicy, Target: pl.target(service), Service: service, ObjectID: pl.byService[service].ID,
			Key: compose.PolicyVolume, Cause: "policy changed",
		}, after...)
	}
}

// OnlyReload reports whether a plan of [PlanUp] at most sends the guard a new
// policy. Otherwise more has the other changes.
func OnlyReload(p *Plan) (only bool, more []Line) {
	q := *p
	q.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Op == OpReloadPolicy })
	return q.Empty(), q.Lines()
}
