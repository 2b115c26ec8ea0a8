package engine

import (
	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

// policyChanged reports whether the guard would start with another policy than
// the desired one. A policy that couldn't be read counts as another.
func (pl *planner) policyChanged() bool {
	return pl.c.Policy != nil && pl.o.PolicyDigest != firewall.Digest(pl.c.Policy)
}

// startsWithOldPolicy reports whether a guard that was stopped is started, and its
// volume has another policy: it is filled before.
func (pl *planner) startsWithOldPolicy(decisions map[string]decision) bool {
	for _, service := range pl.services(compose.RoleGuard) {
		if decisions[service].action == start && pl.policyChanged() {
			return true
		}
	}
	return false
}

// allRemoved are the steps that remove containers. A guard gets a new policy
// after them: a worker on its way to another room must not meet lines that its
// old room has only now (B40).
func (pl *planner) allRemoved() []int {
	var ids []int
	for _, c := range pl.o.Containers {
		ids = append(ids, pl.removed[c.ID])
	}
	return ids
}

// reloadPolicy gives a guard that stays the new policy: connections that it
// still allows go on, the others end (B27), and no worker is touched.
//
// Everything that is started waits for the step: it finds the new policy from
// its first packet on.
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

// OnlyReload reports whether a plan of [PlanUp] does nothing but give the guard a
// new policy, or nothing at all. Else more says, once for each object, what it
// would do besides and why: "container/p-guard-1: create (not found)".
func OnlyReload(p *Plan) (only bool, more []string) {
	said := map[string]bool{}
	for _, s := range p.Steps {
		if s.Op == OpReloadPolicy || s.onlyLooks() || said[s.Target] {
			continue
		}
		said[s.Target] = true
		more = append(more, s.Target+": "+s.Op.String()+" ("+s.Cause+")")
	}
	return len(more) == 0, more
}
