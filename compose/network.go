package compose

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/workshop"
)

// defaultNetwork is the guard's own bridge network; nothing else is on it.
const defaultNetwork = "default"

// roomGroup is one room and the workers that share it.
type roomGroup struct {
	policy firewall.RoomPolicy
	source diag.Source
}

// groupRooms puts workers with the same effective network policy into one
// room, unless one asks for its own. Rooms are in order of their first worker.
func groupRooms(w *workshop.Workshop) []roomGroup {
	var groups []roomGroup
	byPolicy := map[string]int{}
	for i := range w.Workers {
		name, n := w.Workers[i].Name, &w.Workers[i].Container.Network
		if n.Mode.V == firewall.None {
			continue
		}
		key := policyKey(n)
		at, shared := byPolicy[key]
		if n.OwnRoom.V || !shared {
			if !n.OwnRoom.V {
				byPolicy[key] = len(groups)
			}
			groups = append(groups, roomGroup{
				policy: firewall.RoomPolicy{Room: RoomPrefix + "-" + name, Mode: n.Mode.V, Workers: []string{name}, Allow: n.Allow, Deny: n.Deny},
				source: n.Source,
			})
			continue
		}
		groups[at].policy.Workers = append(groups[at].policy.Workers, name)
	}
	if len(groups) == 1 {
		groups[0].policy.Room = RoomPrefix
	}
	for i := range groups {
		slices.Sort(groups[i].policy.Workers)
	}
	return groups
}

// policyKey is equal for networks that may reach the same.
func policyKey(n *workshop.Network) string {
	var b strings.Builder
	b.WriteByte('0' + byte(n.Mode.V))
	for _, rules := range [][]firewall.Rule{n.Allow, n.Deny} {
		lines := make([]string, len(rules))
		for i := range rules {
			lines[i] = ruleKey(&rules[i])
		}
		slices.Sort(lines)
		for _, l := range slices.Compact(lines) {
			b.WriteString("\n" + l)
		}
		b.WriteString("\n-")
	}
	return b.String()
}

func ruleKey(r *firewall.Rule) string {
	k := r.Host.String() + " " + firewall.FormatPorts(r.Ports)
	if r.CIDR.IsValid() {
		k += " cidr " + r.CIDR.String()
	}
	if r.Private {
		k += " private"
	}
	return k
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
