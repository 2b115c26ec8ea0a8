package egress

import (
	"net/netip"
	"strings"
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
		if d := x.Answer(m, name, a); d.Allowed || d.Reason != reason {
			t.Errorf("an answer with %s: %+v, want %s", a, d, reason)
		}
	}
}

// TestB26_WhatOpensAnAddress: what a refusal suggests opens the address, and where
// it suggests nothing, no line does. Its reason says the same.
func TestB26_WhatOpensAnAddress(t *testing.T) {
	addr := netip.MustParseAddr
	x := &Dialer{Upstream: NewUpstream(&Local{}), Local: &Local{
		at: time.Now().Add(time.Hour), Host: []netip.Addr{addr("198.51.100.250")},
		own:      map[netip.Addr]bool{addr("10.0.0.7"): true, addr("198.51.100.7"): true, addr("127.0.0.1"): true, addr("169.254.0.7"): true},
		gateways: map[netip.Addr]bool{addr("10.0.0.1"): true, addr("198.51.100.1"): true, addr("198.18.0.1"): true},
		links:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("198.51.100.0/26")},
	}}
	for _, a := range []string{"10.0.0.53:53", "198.51.100.53:53"} {
		if err := x.Upstream.Add(netip.MustParseAddrPort(a), OfUser); err != nil {
			t.Fatal(err)
		}
	}
	host, err := firewall.ParseHostPattern("inner.example.org")
	if err != nil {
		t.Fatal(err)
	}
	name, _ := host.Name()
	line := firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts()}
	private := line
	private.Private = true
	const nothing, byName, byRange = "", "{host: inner.example.org, port: 443, private: true}", "{cidr: "
	for _, c := range []struct{ what, addr, reason, suggest string }{
		{"loopback", "127.0.0.1", "loopback", nothing},
		{"link-local", "169.254.1.1", "link-local", nothing},
		{"own, link-local", "169.254.0.7", "link-local", nothing},
		{"metadata", "169.254.169.254", "metadata", nothing},
		{"own, private", "10.0.0.7", events.ReasonOwn, nothing},
		{"own, public", "198.51.100.7", events.ReasonOwn, nothing},
		{"resolver, private", "10.0.0.53", events.ReasonUpstream, nothing},
		{"resolver, public", "198.51.100.53", events.ReasonUpstream, nothing},
		{"gateway, private", "10.0.0.1", events.ReasonGateway, byRange},
		{"gateway, public", "198.51.100.1", events.ReasonGateway, byRange},
		{"gateway, benchmark", "198.18.0.1", events.ReasonGateway, byRange},
		{"the host's public address", "198.51.100.250", events.ReasonGateway, byRange},
		{"on-link, private", "10.0.0.8", "private", byName},
		{"on-link, public", "198.51.100.8", events.ReasonOnLink, byRange},
		{"private", "10.1.2.3", "private", byName},
		{"shared", "100.64.0.1", "shared", byName},
		{"benchmark", "198.18.1.1", "benchmark", byRange},
		{"IPv6, private", "fd00::7", "private", byName},
	} {
		t.Run(c.what, func(t *testing.T) {
			a := addr(c.addr)
			ranged := firewall.Rule{CIDR: netip.PrefixFrom(a, a.BitLen()), Ports: firewall.DefaultAllowPorts()}
			check := func(rules ...firewall.Rule) (firewall.Decision, firewall.Decision) {
				m := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: rules}.Compile()
				return x.Check(m, m.Name(name, 443), a, 443), x.Answer(m, name, a)
			}
			d, answer := check(line)
			if d.Allowed || d.Reason != c.reason || !strings.HasPrefix(d.Suggest, c.suggest) || (c.suggest == nothing) != (d.Suggest == nothing) {
				t.Errorf("a name's address: %+v, want %s, %q", d, c.reason, c.suggest)
			}
			if answer.Allowed || answer.Reason != c.reason {
				t.Errorf("in an answer: %+v, want %s", answer, c.reason)
			}
			for _, s := range []struct {
				rules []firewall.Rule
				opens bool
			}{
				{[]firewall.Rule{private}, d.Suggest == byName || c.reason == events.ReasonOnLink},
				{[]firewall.Rule{line, ranged}, d.Suggest != nothing},
			} {
				if d, answer := check(s.rules...); d.Allowed != s.opens || answer.Allowed != s.opens {
					t.Errorf("with %+v: %v, in an answer %v, want %v", s.rules, d.Allowed, answer.Allowed, s.opens)
				}
			}
			if answer.Suggest != "" && !strings.Contains(answer.Suggest, "private: true") {
				t.Errorf("the answer suggests %q", answer.Suggest)
			}
			why := firewall.Why(d.Reason, "", "")
			if closed := strings.Contains(why, "nothing opens it"); why == "" || closed != (d.Suggest == nothing) {
				t.Errorf("%s, and suggests %q", why, d.Suggest)
			}
			if strings.HasPrefix(d.Suggest, "{cidr:") && !strings.Contains(why, "`cidr:` opens it") || strings.Contains(d.Suggest, "private: true") && !strings.Contains(why, "`private: true`") {
				t.Errorf("%s, and suggests %q", why, d.Suggest)
			}
			// An address that no line has: a range is suggested if it opens it.
			m := firewall.RoomPolicy{Mode: firewall.Restricted}.Compile()
			if d := x.Refused(m, m.Addr(a, 443), a, 443); d.Allowed || strings.HasPrefix(d.Suggest, byRange) != (c.suggest != nothing) || c.suggest != nothing && d.Reason != firewall.ReasonName {
				t.Errorf("the address alone: %+v", d)
			}
			// In mode open its class refuses it, or nothing does.
			m = firewall.RoomPolicy{Mode: firewall.Open}.Compile()
			if d := m.Addr(a, 443); !d.Allowed {
				if d = x.Refused(m, d, a, 443); d.Reason != c.reason || strings.HasPrefix(d.Suggest, byRange) != (c.suggest != nothing) {
					t.Errorf("the address alone, mode open: %+v", d)
				}
			}
			// A worker isn't told which of the addresses that aren't public is near.
			if told := firewall.ToldReason(d.Reason); c.suggest != nothing && told != "private" {
				t.Errorf("a worker is told %s", told)
			}
		})
	}
}
