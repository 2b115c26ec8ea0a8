package hostfirewall

import (
	"net/netip"

	"github.com/llmdo/workshop/firewall"
)

func ports(p ...uint16) (out []firewall.PortRange) {
	for i := 0; i < len(p); i += 2 {
		out = append(out, firewall.PortRange{First: p[i], Last: p[i+1]})
	}
	return out
}

func opening(to, why string, p ...uint16) Opening {
	return Opening{To: netip.MustParsePrefix(to), Ports: ports(p...), Why: why}
}

// sample is one of everything.
func sample() *Rules {
	resolver := opening("198.51.100.53/32", "a resolver of project shop", 53, 53)
	resolver.UDP = true
	return &Rules{
		UID: 1000,
		Bridges: []Bridge{{
			Project: "shop", Interface: "br-0123456789ab",
			Guard4: netip.MustParseAddr("10.213.1.2"), Guard6: netip.MustParseAddr("2001:db8:9::2"),
			Upstreams: []Opening{resolver},
			Lines: []Opening{
				opening("10.20.0.0/16", "project shop, workshop.yaml:12: 10.20.0.0/16", 5432, 5433, 6000, 6000),
				opening("fd12::/16", "project shop, workshop.yaml:13: fd12::/16", 443, 443),
			},
			Beyond: []Port{{20001, "project shop, workshop.yaml:20: 0.0.0.0:8081"}},
		}},
		Programs: []Programs{
			{Projects: []string{"docs"}, UID: 65532, Lines: []Opening{opening("10.30.0.0/16", "project docs, workshop.yaml:9: 10.30.0.0/16", 22, 22)}},
			{Projects: []string{"site", "wiki"}, Cgroup: "/user.slice/workshop", Upstreams: []Opening{resolver}},
		},
		Ports:   []Port{{8080, "project shop, workshop.yaml:19: 127.0.0.1:8080"}},
		NotHeld: []string{"guards of project blog: they have the user and the control group of other programs"},
	}
}
