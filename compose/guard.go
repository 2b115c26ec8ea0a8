package compose

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/workshop"
)

// Limits of the guard.
const (
	guardMemory = firewall.GuardMemory
	guardCPU    = 1
	guardPIDs   = 64
	// An engine without CAP_SYS_RESOURCE can't raise it above its own hard
	// limit (20,000 was met in the wild): then the guard would not start.
	guardFiles = 4 * pid1.Files
)

// guard compiles the service that decides and carries all egress. It has an
// ordinary network and no capability, no workspace and no secret.
func (c *compiler) guard(rooms []roomGroup) {
	s := hardened(GuardService, guardGrace)
	s.Labels = c.labels(RoleGuard)
	c.initImage(&s, diag.Source{})
	s.User = guardUser
	s.Hostname = GuardService
	s.Entrypoint = types.ShellCommand{ImageInit, "guard"}
	s.HealthCheck = healthcheck(ImageInit, "health", "guard")
	// A killed guard gets its sockets again; rooms and workers stay as they are.
	s.Restart = types.RestartPolicyUnlessStopped
	s.Networks = map[string]*types.ServiceNetworkConfig{defaultNetwork: nil}
	s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit = guardMemory, guardMemory, guardCPU, guardPIDs
	s.Ulimits = map[string]*types.UlimitsConfig{"nofile": {Soft: guardFiles, Hard: guardFiles}}
	s.Tmpfs = types.StringList{controlDir + ":rw,noexec,nosuid,nodev,size=1m,mode=0700,uid=65532,gid=65532"}
	s.Volumes = []types.ServiceVolumeConfig{socketsMount(true), policyBind()}
	s.Environment = types.MappingWithEquals{}
	c.out.Project.Networks[defaultNetwork] = types.NetworkConfig{Driver: "bridge"}

	p := &firewall.Policy{Version: firewall.PolicyVersion, Workshop: c.w.Name.V}
	net := &c.w.Container.Network
	for i, r := range net.DNS {
		p.Resolvers = append(p.Resolvers, c.policyString(&s, "WORKSHOP_DNS_"+strconv.Itoa(i), r.Value))
	}
	p.Proxy = c.policyString(&s, "WORKSHOP_PROXY", net.Proxy.Value)
	p.ProxyCredential = net.ProxyCredential.V
	for i := range rooms {
		room := rooms[i].policy
		room.Allow = c.policyRules(&s, room.Allow)
		room.Deny = c.policyRules(&s, room.Deny)
		p.Rooms = append(p.Rooms, room)
	}
	sortfunc.Stable(p.Rooms, func(a, b firewall.RoomPolicy) int { return cmp.Compare(a.Room, b.Room) })
	c.ports(&s, p)
	c.out.Policy = p
	s.Labels[LabelPolicy] = firewall.Digest(p)
	c.add(s, RoleGuard)
}

// userUpstreams are the upstreams that the user named, as
// [firewall.UserUpstreamsEnv] has them. They are the machine's and not the
// file's, so they are not part of what is rendered.
func (c *Compiled) userUpstreams() []string {
	if c.workshop == nil {
		return nil
	}
	var out []string
	net := &c.workshop.Container.Network
	for _, r := range net.DNS {
		if a, err := firewall.ParseResolver(r.V); err == nil && r.NamedBy == workshop.OfUser {
			out = append(out, a.String())
		}
	}
	if p, err := firewall.ParseProxy(net.Proxy.V); err == nil && net.Proxy.NamedBy == workshop.OfUser {
		out = append(out, p.String())
	}
	return out
}

// policyString keeps the value of a variable out of policy.json (B45): what
// the scalar means is given to the guard in its environment, and the policy
// refers to that.
func (c *compiler) policyString(s *types.ServiceConfig, name string, v workshop.Value[string]) string {
	if v.Source.Template == "" {
		return diag.Literal(v.V)
	}
	s.Environment[name] = ptr(v.V)
	c.out.Origins[originKey(s.Name, "environment."+name)] = diag.Source{Range: v.Source.Range, Template: v.Source.Template}
	return "${" + name + ":-}"
}

// policyRules does the same for the rules of a room.
func (c *compiler) policyRules(s *types.ServiceConfig, rules []firewall.Rule) []firewall.Rule {
	out := slices.Clone(rules)
	for i := range out {
		r := &out[i]
		if r.Template == "" {
			continue
		}
		template := r.Template
		name, known := c.ruleEnv[template]
		if !known {
			name = "WORKSHOP_RULE_" + strconv.Itoa(len(c.ruleEnv))
			c.ruleEnv[template] = name
			s.Environment[name] = ptr(r.Value)
			c.out.Origins[originKey(s.Name, "environment."+name)] = diag.Source{Range: r.Source.Range, Template: template}
		}
		r.Template = "${" + name + ":?}"
	}
	return out
}

// policyBind is the directory with policy.json, as rendered. Engines that fill
// volumes put it into a project volume instead.
func policyBind() types.ServiceVolumeConfig { return bind("./guard", PolicyDir, true) }
