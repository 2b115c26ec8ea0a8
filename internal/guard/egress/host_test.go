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

// B26: what leads to the machine's loopback is closed like loopback, whatever line there is,
// but to the guard's own questions.
func TestLoopbackByAnotherAddress(t *testing.T) {
	loopback := netip.MustParseAddr("10.0.2.2")
	local := &Local{Loopback: []netip.Addr{loopback}}
	x := &Dialer{Local: local, Upstream: NewUpstream(local)}
	ports := []firewall.PortRange{{First: 22, Last: 22}}
	host, err := firewall.ParseHostPattern("intranet.example.org")
	if err != nil {
		t.Fatal(err)
	}
	m := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: []firewall.Rule{
		{CIDR: netip.MustParsePrefix("10.0.0.0/8"), Ports: ports}, {CIDR: netip.MustParsePrefix("10.0.2.2/32"), Ports: ports}, {Host: host, Private: true, Ports: ports},
	}}.Compile()
	name, err := firewall.ParseName("intranet.example.org")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []netip.Addr{loopback, netip.MustParseAddr("::ffff:10.0.2.2")} {
		if d := x.Check(m, m.Addr(a, 22), a, 22); d.Allowed || d.Reason != "own-address" || d.Suggest != "" {
			t.Errorf("%s by a range: %+v", a, d)
		}
		if d := x.Check(m, m.Name(name, 22), a, 22); d.Allowed || d.Reason != "own-address" || d.Suggest != "" {
			t.Errorf("%s by a name: %+v", a, d)
		}
		if d := x.Answer(m, name, a); d.Allowed || d.Reason != "own-address" {
			t.Errorf("%s in an answer: %+v", a, d)
		}
	}
	near := netip.MustParseAddr("10.0.2.4")
	if d := x.Check(m, m.Addr(near, 22), near, 22); !d.Allowed {
		t.Errorf("its neighbour: %+v", d)
	}
}
