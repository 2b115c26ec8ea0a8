package engine

import (
	"slices"

	"github.com/llmdo/workshop/compose"
)

// PlanDown removes all observed objects of a project. Images and the tool volume
// don't belong to the project and stay, and so do objects that only have its name.
// With a directory, objects of another one are refused, as by [CheckDirectory].
func PlanDown(o Observed, directory string) (*Plan, error) {
	if err := CheckDirectory(o, directory); err != nil {
		return nil, err
	}
	pl := newPlanner(Desired{}, o)
	var all []int
	for _, c := range dependentsFirst(o.Containers) {
		all = append(all, pl.remove(c, "down"))
	}
	pl.workersBeforeRooms()
	for _, n := range o.Networks {
		var after []int
		for _, c := range o.Containers {
			if slices.Contains(c.Networks, n.Name) {
				after = append(after, pl.removed[c.ID])
			}
		}
		pl.add(Step{Op: OpRemoveNetwork, Target: "network/" + n.Name, ObjectID: n.ID, Cause: "down"}, after...)
	}
	for _, v := range o.Volumes {
		pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + v.Name, ObjectID: v.Name, Cause: "down"}, all...)
	}
	return pl.plan, nil
}

// PlanRestart stops and starts workers without changing them; if Only is empty,
// rooms and guard too. If a service has no container, the error is a
// [NotRunningError].
func PlanRestart(d Desired, o Observed) (*Plan, error) {
	pl := newPlanner(d, o)
	if err := pl.refuseForeign(); err != nil {
		return nil, err
	}
	workers, err := pl.workers()
	if err != nil {
		return nil, err
	}
	for _, c := range o.Containers {
		if c.Name == ContainerName(pl.p, c.Service) && !c.Helper && !c.OneOff {
			pl.byService[c.Service] = c
		}
	}
	var base, missing []string
	if len(d.Only) == 0 {
		base = slices.Concat(pl.services(compose.RoleRoom), pl.services(compose.RoleGuard), pl.services(compose.RoleOutlet))
	}
	for _, service := range slices.Concat(base, workers) {
		if c, ok := pl.byService[service]; !ok || c.State == "created" {
			missing = append(missing, service)
		}
	}
	if len(missing) > 0 {
		return nil, &NotRunningError{Project: pl.p.Name, Services: missing}
	}
	step := func(op Op, service, cause string) Step {
		return Step{Op: op, Target: pl.target(service), Service: service, ObjectID: pl.byService[service].ID, Cause: cause}
	}
	var stoppedWorkers, stoppedBase []int
	for _, service := range workers {
		stoppedWorkers = append(stoppedWorkers, pl.add(step(OpStopContainer, service, "restart")))
	}
	for _, service := range base {
		stoppedBase = append(stoppedBase, pl.add(step(OpStopContainer, service, "restart"), stoppedWorkers...))
	}
	waitReady := func(service string) {
		if pl.ready[service] == 0 {
			pl.ready[service] = pl.add(step(OpWaitReady, service, "started"), pl.started[service])
		}
	}
	for _, service := range base {
		after := append(slices.Clone(stoppedBase), pl.started[pl.c.RoomOf[service]])
		pl.started[service] = pl.add(step(OpStartContainer, service, "restart"), after...)
		if pl.isAwaited(service) {
			waitReady(service)
		}
	}
	for i, service := range workers {
		pl.started[service] = pl.add(step(OpStartContainer, service, "restart"), stoppedWorkers[i], pl.started[pl.c.RoomOf[service]], pl.copies(service))
	}
	for _, service := range slices.Concat(base, workers) {
		waitReady(service)
	}
	return pl.plan, nil
}

// PlanPull pulls the wanted workers' images with pull policy "always". It precedes
// [PlanUp], which needs a new observation to see whether an image has changed.
func PlanPull(d Desired) (*Plan, error) {
	pl := newPlanner(d, Observed{})
	workers, err := pl.workers()
	if err != nil {
		return nil, err
	}
	for _, service := range workers {
		s := pl.p.Services[service]
		if s.Build != nil || s.PullPolicy != "always" || pl.images[s.Image] != 0 {
			continue
		}
		pl.images[s.Image] = pl.add(Step{Op: OpPullImage, Target: "image/" + s.Image, Key: s.Image, Service: service, Cause: "pull: always"})
	}
	return pl.plan, nil
}
