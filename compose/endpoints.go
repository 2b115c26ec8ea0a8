package compose

import (
	"slices"
	"strings"

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
		at := r.Endpoint.At
		if at == "" {
			continue
		}
		url := firewall.Endpoint{Port: c.endpointPorts[at]}.URL()
		e[EndpointVariable(at)] = ptr(url)
		if p, ok := presets.Get(at); ok {
			for name, value := range p.Endpoint(url) {
				e[name] = ptr(value)
			}
		}
	}
}

// EndpointVariable is the environment variable of workers that has the URL of an endpoint,
// without a slash at its end: WORKSHOP_ENDPOINT_GITHUB_API for github-api.
func EndpointVariable(at string) string {
	return "WORKSHOP_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(at, "-", "_"))
}
