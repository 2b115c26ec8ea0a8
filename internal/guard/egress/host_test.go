package egress

import (
	"net/netip"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// B26: the host is closed at its public addresses too, also in mode open; a
// cidr rule that holds one opens it.
func TestPublicAddressOfTheHost(t *testing.T) {
	host := netip.MustParseAddr("198.51.100.250")
	x := &Dialer{Local: &Local{Host: []netip.Addr{host}}, Upstream: NewUpstream(&Local{})}
	open := firewall.RoomPolicy{Mode: firewall.Open}.Compile()
	if d := x.Check(open, open.Addr(host, 22), host, 22); d.Allowed || d.Reason != "gateway" {
		t.Errorf("%+v", d)
	}
	next := host.Next()
	if d := x.Check(open, open.Addr(next, 22), next, 22); !d.Allowed {
		t.Errorf("its neighbour: %+v", d)
	}
	named := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: []firewall.Rule{{
		CIDR: netip.MustParsePrefix("198.51.100.250/32"), Ports: []firewall.PortRange{{First: 22, Last: 22}},
	}}}.Compile()
	if d := x.Check(named, named.Addr(host, 22), host, 22); !d.Allowed {
		t.Errorf("named: %+v", d)
	}
}
