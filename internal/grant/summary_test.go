package grant

import (
	"net/netip"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// TestNetworkText: a line of `up` has what variables stand for (B45), and
// what the guard itself goes through.
func TestNetworkText(t *testing.T) {
	var n workshop.Network
	n.Mode.V = firewall.Restricted
	n.Allow = []firewall.Rule{
		{Template: "${H:-api.example.org}", Value: "other.example.net:22", Ports: firewall.DefaultAllowPorts()},
		{Template: "${C:-198.51.100.0/24}", Value: "0.0.0.0/0", Ports: []firewall.PortRange{{First: 22, Last: 22}}},
		{CIDR: netip.MustParsePrefix("2001:db8::/32"), Ports: firewall.DefaultAllowPorts()},
	}
	n.Proxy.V = "http://u:secret@proxy.example.org:3128/"
	n.DNS = []workshop.Upstream{{}, {}}
	n.DNS[0].V, n.DNS[1].V = "198.51.100.53", "198.51.100.54:5353"
	const want = "network restricted to other.example.net, 0.0.0.0/0:22, 2001:db8::/32 through the proxy proxy.example.org:3128, names by 198.51.100.53, 198.51.100.54:5353"
	if got := NetworkText(&n, Values); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
