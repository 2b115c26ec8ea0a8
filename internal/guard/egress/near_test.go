package egress

import (
	"net/netip"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// TestNearWithPublicAddresses: what is near stays closed where a network uses
// public addresses, which the never-list alone would let through (B26).
func TestNearWithPublicAddresses(t *testing.T) {
	own, beside := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.8")
	x := &Dialer{Upstream: &Upstream{}, Local: &Local{
		at: time.Now().Add(time.Hour), own: map[netip.Addr]bool{own: true}, links: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
	}}
	host, err := firewall.ParseHostPattern("allowed.example.org")
	if err != nil {
		t.Fatal(err)
	}
	name, _ := host.Name()
	m := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts()}}}.Compile()
	for a, reason := range map[netip.Addr]string{own: events.ReasonOwn, beside: events.ReasonOnLink} {
		if d := x.Check(m, m.Name(name, 443), a, 443); d.Allowed || d.Reason != reason {
			t.Errorf("dialling %s: %+v, want %s", a, d, reason)
		}
		if x.Answerable(m, name, a) {
			t.Errorf("an answer shows %s", a)
		}
	}
}
