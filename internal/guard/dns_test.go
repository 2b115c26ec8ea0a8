package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestDNS is B23: a denied name causes no packet to any resolver, queries are
// the guard's own, only A and AAAA are asked for.
func TestDNS(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "**.wild.example.org", "chain.example.org", "gone.example.org"))
	w.in.Answer("a.wild.example.org", testnet.A("198.51.100.20").For(7))
	w.in.Answer("chain.example.org", testnet.CNAME("x.elsewhere.example.net"))
	w.in.Answer("x.elsewhere.example.net", testnet.A("198.51.100.21"), testnet.Raw("evil.example.net. 60 IN A 198.51.100.66"))

	servers := []string{testnet.DNS2 + ":53", "192.168.7.7:53", "127.0.0.1:53"}
	if w.in.IPv6 {
		servers = append(servers, "[2001:db8:1::53]:53", "[::1]:53")
	}
	for _, server := range servers {
		for _, network := range []string{"udp", "tcp"} {
			r := w.ask("room", network, server, "allowed.example.org", dns.TypeA)
			if got := addrs(r); !slices.Equal(got, []string{testnet.Allowed}) {
				t.Errorf("%s @%s: %v", network, server, got)
			}
			r = w.ask("room", network, server, "denied.example.org", dns.TypeA)
			if r.Rcode != dns.RcodeNameError || len(r.Answer) != 0 {
				t.Errorf("%s @%s: a denied name: %v", network, server, r)
			}
			if ede := extended(r); ede == nil || ede.InfoCode != dns.ExtendedErrorCodeBlocked {
				t.Errorf("%s @%s: no extended error: %v", network, server, r)
			}
		}
	}
	if n := w.in.Asked("denied.example.org"); n != 0 {
		t.Errorf("%d queries for a denied name reached a resolver", n)
	}
	if n := w.in.Packets("udp", testnet.DNS2, 0) + w.in.Packets("tcp", testnet.DNS2, 0); n != 0 {
		t.Errorf("%d packets to a server that the worker named", n)
	}
	if n := w.in.Asked("allowed.example.org"); n != 1 {
		t.Errorf("%d queries for one name, want 1: the cache", n)
	}

	q := new(dns.Msg).SetQuestion("A.wILd.ExAmple.org.", dns.TypeA)
	q.SetEdns0(4096, true)
	q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte("out you go")})
	r, err := w.exchange("room", "udp", servers[0], q)
	if err != nil || len(r.Answer) != 1 || r.Answer[0].Header().Name != "A.wILd.ExAmple.org." || r.Answer[0].Header().Ttl > 7 {
		t.Errorf("wildcard in mixed case: %v %v", r, err)
	}
	for _, q := range w.in.Queries() {
		if q.EDNS != 1232 || q.Options != 0 || q.Name != dns.CanonicalName(q.Name) || (q.Type != "A" && q.Type != "AAAA") {
			t.Errorf("not a query of the guard's own: %+v", q)
		}
	}
	if got := addrs(w.ask("room", "udp", servers[0], "chain.example.org", dns.TypeA)); !slices.Equal(got, []string{"198.51.100.21"}) {
		t.Errorf("chain: %v", got)
	}
	before := len(w.in.Queries())
	for _, qt := range []uint16{dns.TypeHTTPS, dns.TypeSVCB, dns.TypeTXT, dns.TypeANY, dns.TypeMX, dns.TypeNULL} {
		if r := w.ask("room", "udp", servers[0], "allowed.example.org", qt); r.Rcode != dns.RcodeSuccess || len(r.Answer) != 0 {
			t.Errorf("type %d: %v", qt, r)
		}
	}
	if n := len(w.in.Queries()) - before; n != 0 {
		t.Errorf("%d queries of other types reached a resolver", n)
	}
	if r := w.ask("room", "udp", servers[0], "gone.example.org", dns.TypeA); r.Rcode != dns.RcodeNameError {
		t.Errorf("a name that doesn't exist: %v", r)
	}
	six := addrs(w.ask("room", "udp", servers[0], "allowed.example.org", dns.TypeAAAA))
	if w.in.IPv6 != slices.Equal(six, []string{testnet.Allowed6}) {
		t.Errorf("AAAA: %v", six)
	}
	if got := addrs(w.ask("room", "udp", servers[0], "ready.workshop.internal", dns.TypeA)); !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("ready: %v", got)
	}
	if n := w.in.Asked("ready.workshop.internal"); n != 0 {
		t.Error("ready.workshop.internal left the guard")
	}
	w.guard.eventually(2*len(servers), "denials of denied.example.org (B28)", func(e event) bool {
		return e.Kind == "dns" && e.Name == "denied.example.org" && e.Verdict == "deny" && e.Room == "room" &&
			slices.Equal(e.Workers, []string{"alice", "bob"}) && e.Suggest == "denied.example.org" && e.Reason == "not-allowed"
	})
}

func extended(m *dns.Msg) *dns.EDNS0_EDE {
	if o := m.IsEdns0(); o != nil {
		for _, x := range o.Option {
			if e, ok := x.(*dns.EDNS0_EDE); ok {
				return e
			}
		}
	}
	return nil
}

// TestDNSRebinding is B26 for names: answers with addresses that may not be
// dialled are taken out, unless the rule says private.
func TestDNSRebinding(t *testing.T) {
	w := newWorld(t, restricted(t, "rebind.example.org", "db.example.org:5432 private"))
	w.in.Answer("rebind.example.org", testnet.A("169.254.169.254"), testnet.A("127.0.0.1"), testnet.A("10.1.2.3"),
		testnet.A("198.18.0.2"), testnet.A("198.18.0.1"), testnet.A("0.0.0.0"), testnet.A("224.0.0.1"), testnet.A(testnet.DNS),
		testnet.A("198.51.100.30"), testnet.A("::1"), testnet.A("fe80::1"), testnet.A("fd00:ec2::254"), testnet.A("64:ff9b::a9fe:a9fe"),
		testnet.A("2001:db8:ffff::2"), testnet.A("2001:db8:1::30"))
	w.in.Answer("db.example.org", testnet.A("10.1.2.3"), testnet.A("169.254.169.254"))
	if got := addrs(w.ask("room", "udp", "10.0.0.1:53", "rebind.example.org", dns.TypeA)); !slices.Equal(got, []string{"198.51.100.30"}) {
		t.Errorf("A: %v", got)
	}
	if w.in.IPv6 {
		if got := addrs(w.ask("room", "udp", "10.0.0.1:53", "rebind.example.org", dns.TypeAAAA)); !slices.Equal(got, []string{"2001:db8:1::30"}) {
			t.Errorf("AAAA: %v", got)
		}
	}
	if got := addrs(w.ask("room", "udp", "10.0.0.1:53", "db.example.org", dns.TypeA)); !slices.Equal(got, []string{"10.1.2.3"}) {
		t.Errorf("private: %v", got)
	}
	for a, reason := range map[string]string{"169.254.169.254": "metadata", "198.18.0.1": "own-address", testnet.DNS: "upstream", "10.1.2.3": "private"} {
		suggest := ""
		if reason == "private" {
			suggest = "{host: rebind.example.org, private: true}"
		}
		w.guard.eventually(1, a+" is taken out", func(e event) bool {
			return e.Verdict == "deny" && e.Kind == "dns" && e.Name == "rebind.example.org" && e.Address == a && e.Reason == reason && e.Suggest == suggest
		})
	}
}

// TestDNSUpstreamFails: truncation is answered over TCP, a silent first server
// doesn't stop the second, and a failure is an answer and not a silence.
func TestDNSUpstreamFails(t *testing.T) {
	p := restricted(t, "big.example.org", "quiet.example.org", "broken.example.org")
	p.Resolvers = []string{"198.51.100.99", testnet.DNS}
	w := newWorld(t, p)
	var many []testnet.Record
	for i := range 100 {
		many = append(many, testnet.A(fmt.Sprintf("198.51.100.%d", 100+i)))
	}
	w.in.Answer("big.example.org", many...)
	if r := w.ask("room", "tcp", "10.0.0.1:53", "big.example.org", dns.TypeA); len(r.Answer) != 64 {
		t.Errorf("a large answer: %d addresses, want the bound of 64", len(r.Answer))
	}
	w.in.Answer("broken.example.org", testnet.ServFail)
	start := testutil.Now()
	if r := w.ask("room", "tcp", "10.0.0.1:53", "broken.example.org", dns.TypeA); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("broken upstream: %v", r)
	}
	if d := testutil.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
}
