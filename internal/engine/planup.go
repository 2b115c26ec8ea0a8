package engine

import (
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// action is what happens to the container of one service.
type action int

const (
	leave  action = iota // not wanted, not touched
	keep                 // running and up to date
	start                // up to date, but stopped
	create               // created, after the old one is removed
)

// ConfigurationChanged is the cause of steps where nothing is known but that.
const ConfigurationChanged = "configuration changed"

type decision struct {
	action action
	cause  string
}

// PlanUp plans the steps from the observed to the desired state. It always includes
// all rooms and the guard, because the guard is ready only when it serves all rooms;
// Only selects workers.
//
// A container that was created but never started is always recreated, and a volume
// is filled before any container that uses it is started. So whatever an interrupted
// run left, a container that ever ran had complete volumes.
//
// Images are pulled and built first: a missing image leaves the running workshop
// unchanged.
//
// If only the lines of its rooms have changed, the guard stays and gets the new
// policy (see reloadPolicy). It is recreated for a change of resolvers, proxy,
// published ports, rooms, modes, or a variable's value in a line.
//
// The errors are a [ForeignError], an [UnknownWorkerError] and a
// [MissingImageError].
func PlanUp(d Desired, o Observed) (*Plan, error) {
	pl := newPlanner(d, o)
	if err := pl.refuseForeign(); err != nil {
		return nil, err
	}
	if err := refuseOthers(o, pl.p.Name, pl.p.WorkingDir); err != nil {
		return nil, err
	}
	wanted, err := pl.workers()
	if err != nil {
		return nil, err
	}
	pl.removeStrays(wanted)
	pl.removeTwins()
	decisions := pl.decide(wanted)
	if err := pl.prepareImages(decisions); err != nil {
		return nil, err
	}
	pl.checkPorts(decisions)
	for _, old := range dependentsFirst(slices.Collect(maps.Values(pl.byService))) {
		if d := decisions[old.Service]; d.action == create {
			pl.remove(old, d.cause, pl.barrier...)
		}
	}
	pl.prepareNetworks(decisions)
	pl.prepareVolumes(decisions)
	pl.reloadPolicy(decisions)
	pl.createAndStart(decisions)
	pl.removeSuperseded(decisions)
	pl.workersBeforeRooms()
	return pl.plan, nil
}

// removeStrays removes orphans, and finds the one container of each service.
func (pl *planner) removeStrays(wanted []string) {
	for _, c := range pl.o.Containers {
		_, known := pl.p.Services[c.Service]
		switch {
		case c.Helper:
			pl.remove(c, "left by an interrupted run")
		case c.OneOff:
			// A user's `docker compose run`: it stays until `down`.
		case !known:
			pl.remove(c, "no longer in the workshop")
		case c.Name != ContainerName(pl.p, c.Service):
			pl.remove(c, "duplicate container of "+c.Service)
		case c.State == "created" && pl.c.Roles[c.Service] == compose.RoleWorker && !slices.Contains(wanted, c.Service):
			pl.remove(c, "was never started")
		default:
			pl.byService[c.Service] = c
		}
	}
}

// decide chooses for every service; rooms first, because workers follow them.
func (pl *planner) decide(wanted []string) map[string]decision {
	out := map[string]decision{}
	changedNetworks, changedCopies := pl.changedNetworks(), pl.changedCopies(wanted)
	for _, role := range []compose.Role{compose.RoleRoom, compose.RoleGuard, compose.RoleOutlet, compose.RoleWorker} {
		for _, service := range pl.services(role) {
			asked := role != compose.RoleWorker || slices.Contains(wanted, service)
			out[service] = pl.decideOne(service, role, asked, out, changedNetworks, changedCopies)
		}
	}
	return out
}

func (pl *planner) decideOne(service string, role compose.Role, asked bool, done map[string]decision, networks map[string]bool, copies map[string]string) decision {
	c, exists := pl.byService[service]
	if !exists {
		if asked {
			return decision{create, "not found"}
		}
		return decision{leave, ""}
	}
	room := pl.c.RoomOf[service]
	if room != "" && done[room].action == create {
		return decision{create, "its room is recreated"}
	}
	s := pl.p.Services[service]
	for _, v := range s.Volumes {
		if cause := copies[v.Source]; cause != "" && v.Type == types.VolumeTypeVolume {
			return decision{create, cause}
		}
	}
	if !asked {
		if c.State == "running" && c.NetworkOf != "" && c.NetworkOf != pl.byService[room].ID {
			// It would continue with the lines of others (B40).
			return decision{create, "it is in another room"}
		}
		return decision{leave, ""}
	}
	for _, key := range sortedKeys(s.Networks) {
		if networks[key] {
			return decision{create, "its network changed"}
		}
	}
	ref := ImageRef(pl.d, service)
	switch imageID := pl.o.Images[ref]; {
	case c.ByCompose:
		return decision{create, "made by Compose"}
	case c.ConfigHash != ConfigHash(pl.d, service):
		return decision{create, ConfigurationChanged}
	case imageID != "" && c.ImageID != "" && imageID != c.ImageID:
		return decision{create, "image changed"}
	case room != "" && c.NetworkOf != pl.byService[room].ID:
		return decision{create, "it is in another room"}
	case room != "" && c.State == "running" && c.Started.Before(pl.byService[room].Started):
		// A room that was restarted by hand has a new namespace; the worker is left
		// in the old one, which stays closed (B21).
		return decision{create, "its room was restarted"}
	case c.State == "running" && len(c.Replaced) > 0:
		return decision{create, "a mount was replaced, renamed or removed on the host"}
	}
	switch c.State {
	case "running":
		return decision{keep, "running"}
	case "created":
		return decision{create, "was never started"}
	case "exited":
		if role == compose.RoleRoom {
			return decision{create, "exited"}
		}
		if c.lostMount() {
			return decision{start, "exited: a mount was replaced, renamed or removed on the host"}
		}
		return decision{start, "exited"}
	}
	return decision{create, "is " + c.State}
}

func (pl *planner) createAndStart(decisions map[string]decision) {
	order := slices.Concat(pl.services(compose.RoleRoom), pl.services(compose.RoleGuard), pl.services(compose.RoleOutlet), pl.services(compose.RoleWorker))
	for _, service := range order {
		if d := decisions[service]; d.action == create {
			pl.created[service] = pl.create(service, d)
		}
	}
	for _, service := range order {
		d := decisions[service]
		if d.action == create || d.action == start {
			pl.started[service] = pl.start(service, d)
		}
		if d.action != leave && pl.isAwaited(service) {
			pl.waitReady(service, d)
		}
	}
	for _, service := range order {
		if d := decisions[service]; d.action != leave && pl.ready[service] == 0 {
			pl.waitReady(service, d)
		}
	}
}

// isAwaited reports whether a service is a room that has an outlet: a kernel of a worker's
// own copies the network of its room once, when it starts.
func (pl *planner) isAwaited(service string) bool {
	return slices.ContainsFunc(pl.services(compose.RoleOutlet), func(o string) bool { return pl.c.RoomOf[o] == service })
}

// copies returns the step in which the room that a worker's kernel copies becomes ready; 0:
// it copies none. Its outlet may start at the same time: its PID 1 waits for that before
// anything else can connect.
func (pl *planner) copies(worker string) int {
	for _, outlet := range pl.services(compose.RoleOutlet) {
		if uses(pl.p.Services[worker], outlet) && pl.c.Roles[worker] == compose.RoleWorker { // its volume has its name
			return pl.ready[pl.c.RoomOf[outlet]]
		}
	}
	return 0
}

func (pl *planner) waitReady(service string, d decision) {
	cause, reload := "started", 0
	if d.action == keep {
		cause = d.cause
	}
	if pl.c.Roles[service] == compose.RoleGuard {
		reload = pl.reload
	}
	pl.ready[service] = pl.add(Step{Op: OpWaitReady, Target: pl.target(service), Service: service, ObjectID: pl.keptID(service, d), Cause: cause},
		pl.started[service], pl.toolsFor(service), reload)
}

func (pl *planner) create(service string, d decision) int {
	s := pl.p.Services[service]
	after := append([]int{pl.init, pl.names[ContainerName(pl.p, service)], pl.created[pl.c.RoomOf[service]]}, pl.barrier...)
	after = append(after, pl.toolsFor(service))
	if pl.o.Outdated {
		after = append(after, pl.allRemoved()...)
	}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeVolume {
			after = append(after, pl.fresh[v.Source])
		}
	}
	for key := range s.Networks {
		after = append(after, pl.network[key])
	}
	return pl.add(Step{Op: OpCreateContainer, Target: pl.target(service), Service: service, Cause: d.cause}, after...)
}

func (pl *planner) start(service string, d decision) int {
	after := []int{pl.created[service], pl.started[pl.c.RoomOf[service]], pl.toolsFor(service), pl.reload}
	for _, v := range pl.p.Services[service].Volumes {
		if v.Type == types.VolumeTypeVolume {
			after = append(after, pl.volumes[v.Source])
		}
	}
	after = append(after, pl.copies(service))
	if d.action == start { // a created one's creation waits
		for key := range pl.p.Services[service].Networks {
			after = append(after, pl.network[key])
		}
	}
	if pl.c.Roles[service] == compose.RoleGuard {
		after = append(after, pl.allRemoved()...)
	}
	cause := d.cause
	if d.action == create {
		cause = "created"
	}
	return pl.add(Step{Op: OpStartContainer, Target: pl.target(service), Service: service, ObjectID: pl.keptID(service, d), Cause: cause}, after...)
}

// toolVolumes are the keys of tool volumes.
var toolVolumes = []string{compose.ToolsVolume, compose.ReadableToolsVolume}

// toolsFor returns the step that verifies the tool volume that the service uses, if any.
func (pl *planner) toolsFor(service string) int {
	for _, key := range toolVolumes {
		if uses(pl.p.Services[service], key) {
			return pl.tools[key]
		}
	}
	return 0
}

// uses reports whether a service mounts a volume.
func uses(s types.ServiceConfig, key string) bool {
	return slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Source == key
	})
}

func (pl *planner) target(service string) string {
	return "container/" + ContainerName(pl.p, service)
}

// keptID returns the ID of the container if it stays; a created one has no ID yet.
func (pl *planner) keptID(service string, d decision) string {
	if d.action == create {
		return ""
	}
	return pl.byService[service].ID
}
