package compose

import (
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/workshop"
)

// Limits of an outlet: each stream of its worker is a connection of its own.
const (
	outletMemory = firewall.OutletMemory
	outletCPU    = 1
	outletPIDs   = 32
	outletUser   = "65531:65531"
)

// Names of outlets: like their rooms.
const outletPrefix = "outlet"

// OutletDir is where an outlet listens for its worker: a volume of the two.
const OutletDir = "/run/outlet"

// OutletSocket is what its worker, or the virtual machine that runs it, connects to.
const OutletSocket = OutletDir + "/outlet.sock"

// outletName is the service, and the volume, of the outlet in a room.
func outletName(room string) string { return outletPrefix + strings.TrimPrefix(room, roomPrefix) }

// outlet compiles the service that makes, in the room of a worker whose kernel isn't this
// machine's, the connections that its worker asks for: that kernel has a network stack of its
// own. It says nothing that a worker in that room couldn't.
func (c *compiler) outlet(room string, w *workshop.Worker) {
	s := hardened(outletName(room), roomGrace)
	s.Labels = c.labels(RoleOutlet)
	c.initImage(&s, diag.Source{})
	s.User = outletUser
	s.NetworkMode = types.ServicePrefix + room
	s.Labels[LabelRooms] = room
	s.DependsOn = types.DependsOnConfig{room: {Condition: types.ServiceConditionStarted, Required: true}}
	s.Restart = types.RestartPolicyUnlessStopped
	s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit = outletMemory, outletMemory, outletCPU, outletPIDs
	s.Ulimits = map[string]*types.UlimitsConfig{"nofile": {Soft: pid1.Files, Hard: pid1.Files}}
	s.Volumes = []types.ServiceVolumeConfig{outletMount(room, false)}
	s.Entrypoint = types.ShellCommand{ImageInit, "outlet", "--socket", OutletSocket}
	for i := range w.Container.Ports {
		s.Entrypoint = append(s.Entrypoint, "--inbound", strconv.Itoa(int(w.Container.Ports[i].Target.V)))
	}
	s.HealthCheck = healthcheck(ImageInit, "health", "outlet")
	c.origin(s.Name, "", w.Container.Kernel.Source)
	c.out.Project.Volumes[s.Name] = types.VolumeConfig{}
	c.out.RoomOf[s.Name] = room
	c.add(s, RoleOutlet)
}

// outletMount is the volume of an outlet and its worker. In the outlet it takes its owner
// from the image, which has the directory.
func outletMount(room string, readOnly bool) types.ServiceVolumeConfig {
	v := volume(outletName(room), OutletDir)
	if !readOnly {
		v.ReadOnly, v.Volume = false, nil
	}
	return v
}

// carried makes a worker whose kernel isn't this machine's one that reaches its room by an
// outlet.
func (c *compiler) carried(s *types.ServiceConfig, k *workshop.Container) {
	room := c.out.RoomOf[s.Name]
	if room == "" || !k.Kernel.V.Own() {
		return
	}
	s.Volumes = append(s.Volumes, outletMount(room, true))
	s.DependsOn[outletName(room)] = types.ServiceDependency{Condition: types.ServiceConditionStarted, Required: true}
}

// ownKernel is the worker of a room whose kernel isn't this machine's; nil: there is none.
func (c *compiler) ownKernel(g *roomGroup) *workshop.Worker {
	w := c.out.workers[g.policy.Workers[0]]
	if !w.Container.Kernel.V.Own() {
		return nil
	}
	return w
}
