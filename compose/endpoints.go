package compose

import (
	"slices"
	"strconv"

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
			for name, value := range p.Endpoint(x.URL(), x.Credential != "") {
				e[name] = ptr(value)
			}
		}
	}
}

// gitEndpoints lead git to the endpoints that have `git`, whichever address of the host it is
// given. Where several are for one host, each has its owners' repositories.
func (c *compiler) gitEndpoints(n *workshop.Network) (out []gitSetting) {
	hosts := map[string]int{}
	for _, r := range n.Allow {
		if !r.Endpoint.Git.IsZero() {
			hosts[r.Target()]++
		}
	}
	for _, r := range n.Allow {
		x := r.Endpoint
		if x.Git.IsZero() {
			continue
		}
		x.Port = c.endpointPorts[x.At]
		host := r.Target()
		address := "https://" + host + "/"
		if port := r.Ports[0].First; port != 443 {
			address = "https://" + host + ":" + strconv.Itoa(int(port)) + "/"
		}
		below := []string{""}
		if hosts[host] > 1 {
			below, _ = x.Git.Owners() // that they have different ones, the workshop's check says
			for i := range below {
				below[i] += "/"
			}
		}
		for _, owner := range below {
			for _, from := range []string{address, "git@" + host + ":", "ssh://git@" + host + "/"} {
				out = append(out, gitSetting{"url." + x.URL() + "/" + owner + ".insteadOf", from + owner})
			}
		}
	}
	return out
}
