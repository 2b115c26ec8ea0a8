package app

import (
	"net/netip"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// Hosts and networks of variables are a line each, as written ones are.
func TestResolveRules(t *testing.T) {
	lines := resolveRules([]firewall.Rule{
		{Template: "${H:-api.example.org}", Value: "other.example.net:22", Ports: firewall.DefaultAllowPorts()},
		{Template: "${C:-198.51.100.0/24}", Value: "0.0.0.0/0", Ports: []firewall.PortRange{{First: 22, Last: 22}}},
		{CIDR: netip.MustParsePrefix("2001:db8::/32"), Ports: firewall.DefaultAllowPorts()},
	}, "80,443")
	if len(lines) != 3 {
		t.Error(lines)
	}
	// The name of a preset alone is refused in a file.
	lines = resolveRules([]firewall.Rule{{Template: "${H:-npm}", Value: "npm", Ports: firewall.DefaultAllowPorts()}}, "80,443")
	if len(lines) != 1 || lines[0] != (any)(resolvedRule{Host: "npm"}) {
		t.Errorf("got %#v, want a mapping", lines)
	}
}
