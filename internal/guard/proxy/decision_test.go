package proxy

import (
	"bufio"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TestDenyWinsOverTheAddress: what a name that is denied now was answered with
// earlier stays closed, though its range or mode open would allow it (B23).
func TestDenyWinsOverTheAddress(t *testing.T) {
	host, err := firewall.ParseHostPattern("denied.example.org")
	if err != nil {
		t.Fatal(err)
	}
	name, _ := host.Name()
	to := netip.MustParseAddrPort("198.51.100.10:22")
	r := &Room{Pins: &dns.Pins{}}
	r.Pins.Add(name, []netip.Addr{to.Addr()}, time.Minute)
	p := &policy.Room{Matcher: firewall.RoomPolicy{
		Mode: firewall.Open, Deny: []firewall.Rule{{Host: host, Ports: []firewall.PortRange{firewall.AllPorts}}},
	}.Compile()}
	for _, port := range []uint16{22, 80, 443} {
		if d, _ := r.DecideAddr(p, netip.AddrPortFrom(to.Addr(), port)); d.Allowed || d.Reason != firewall.ReasonDenied {
			t.Errorf("%+v", d)
		}
	}
}

// TestOneLongLine: a head of few lines is bounded too (B60).
func TestOneLongLine(t *testing.T) {
	head := "GET / HTTP/1.1\r\nHost: a.example.org\r\nX: " + strings.Repeat("a", maxHead) + "\r\n\r\n"
	if _, err := readHead(bufio.NewReader(strings.NewReader(head)), anyLarge); err != errHeadTooLarge {
		t.Error(err)
	}
}
