package compose

import (
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/workshop"
)

// endpoints assigns each endpoint of the workshop its port inside the rooms: none that a
// line of some room names, which a room without netfilter listens on.
func (c *compiler) endpoints(rooms []roomGroup) {
	var names []string
	var taken []firewall.PortRange
	for i := range rooms {
		for _, r := range rooms[i].policy.Allow {
			if r.Endpoint.IsZero() {
				taken = append(taken, r.Ports...)
			} else {
				names = append(names, r.Endpoint.At)
			}
		}
	}
	var err error
	if c.endpointPorts, err = firewall.AssignEndpoints(names, firewall.NormalizePorts(taken)); err != nil {
		c.errs = append(c.errs, err)
		return
	}
	for i := range rooms {
		allow := slices.Clone(rooms[i].policy.Allow)
		for j := range allow {
			if e := &allow[j].Endpoint; !e.IsZero() {
				e.Port = c.endpointPorts[e.At]
			}
		}
		rooms[i].policy.Allow = allow
	}
}

// endpointEnv says in a worker's environment where its endpoints are; one with the name of
// a preset leads the preset's tools there.
func (c *compiler) endpointEnv(e types.MappingWithEquals, n *workshop.Network) {
	for _, r := range n.Allow {
		x := r.Endpoint
		if x.IsZero() {
			continue
		}
		x.Port = c.endpointPorts[x.At]
		e[x.Variable()] = ptr(x.URL())
		if p, ok := presets.Get(x.At); ok {
			for name, value := range p.Endpoint(x.URL()) {
				e[name] = ptr(value)
			}
		}
	}
}
