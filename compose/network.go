package compose

import (
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// defaultNetwork is the guard's own bridge network; nothing else is on it.
const defaultNetwork = "default"

// roomGroup is one room and the workers that share it.
type roomGroup struct {
	policy firewall.RoomPolicy
	source diag.Source
}

// groupRooms assigns each room the policy that its workers share.
func groupRooms(w *workshop.Workshop) []roomGroup {
	first := make(map[string]*workshop.Worker, len(w.Workers))
	for i := range w.Workers {
		first[w.Workers[i].Name] = &w.Workers[i]
	}
	rooms := workshop.Rooms(w)
	groups := make([]roomGroup, len(rooms))
	for i, r := range rooms {
		n := &first[r.Workers[0]].Container.Network
		groups[i] = roomGroup{source: n.Source, policy: firewall.RoomPolicy{
			Room: r.Name, Mode: n.Mode.V, Workers: r.Workers, Allow: n.Allow, Deny: n.Deny,
		}}
	}
	return groups
}

// workerNetwork puts a worker into its room, or into a namespace of its own.
func (c *compiler) workerNetwork(s *types.ServiceConfig, k *workshop.Container) {
	c.origin(s.Name, "network_mode", k.Network.Source)
	room := c.out.RoomOf[s.Name]
	if room == "" {
		s.NetworkMode = "none"
		names(s)
		return
	}
	s.NetworkMode = types.ServicePrefix + room
	s.Labels[LabelRooms] = room
	// For plain Compose. That the room runs is enough: without rules and
	// guard it is closed, and the gate waits for both.
	s.DependsOn = types.DependsOnConfig{
		room:         {Condition: types.ServiceConditionStarted, Required: true},
		GuardService: {Condition: types.ServiceConditionStarted, Required: true},
	}
}
