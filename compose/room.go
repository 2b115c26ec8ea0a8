package compose

import (
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// Limits of a room: it holds sockets and rules and idles.
const (
	roomMemory = firewall.RoomMemory
	roomCPU    = 0.1
	roomPIDs   = 16
)

// room compiles the service whose network namespace the workers of a group
// join. It is the one service with capabilities: it loads rules and opens
// ports below 1024, before any worker starts, in a namespace without a cable.
func (c *compiler) room(g *roomGroup) {
	p := &g.policy
	s := hardened(p.Room, roomGrace)
	s.Labels = c.labels(RoleRoom)
	c.initImage(&s, diag.Source{})
	s.User = "0:0"
	s.CapAdd = []string{"NET_ADMIN", "NET_BIND_SERVICE"}
	s.NetworkMode = "none"
	names(&s)
	s.Sysctls = types.Mapping{"net.ipv4.ip_unprivileged_port_start": "1024"}
	s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit = roomMemory, roomMemory, roomCPU, roomPIDs
	s.Volumes = []types.ServiceVolumeConfig{socketsMount(false)}

	options := firewall.RulesetOptions{Ports: firewall.RedirectPorts(*p), Open: p.Mode == firewall.Open}
	c.out.Rulesets[s.Name] = firewall.NewRuleset(options)
	s.Entrypoint = types.ShellCommand{ImageInit, "room", "--name", s.Name}
	if options.Open {
		s.Entrypoint = append(s.Entrypoint, "--open")
	}
	if c.ownKernel(g) != nil {
		s.Entrypoint = append(s.Entrypoint, "--outlet", "--every-address")
	}
	s.HealthCheck = healthcheck(ImageInit, "health", "room")
	c.origin(s.Name, "", g.source)
	c.out.Project.Volumes[SocketsVolume] = types.VolumeConfig{}
	c.add(s, RoleRoom)
}

// names are the name keys of a network namespace: they are at its owner,
// because a container that joins a namespace can't carry them. Every look-up
// goes to loopback: answered by the guard in a room, refused at once without.
func names(s *types.ServiceConfig) {
	s.Hostname = WorkerHostname
	s.ExtraHosts = types.HostsList{WorkerHostname: {"127.0.0.1"}}
	s.DNS = types.StringList{"127.0.0.1"}
	s.DNSSearch = types.StringList{"."}
	s.DNSOpts = []string{"timeout:2", "attempts:1"}
}
