package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/share"
)

func name(t testing.TB, s string) firewall.Name {
	t.Helper()
	n, err := firewall.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func rrs(t testing.TB, lines ...string) (out []dns.RR) {
	t.Helper()
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rr)
	}
	return out
}

func TestFlatten(t *testing.T) {
	for what, c := range map[string]struct {
		in   []dns.RR
		want []string
		ttl  uint32
	}{
		"direct":           {rrs(t, "a.example.org. 60 A 198.51.100.1"), []string{"198.51.100.1"}, 60},
		"smallest TTL":     {rrs(t, "a.example.org. 5 CNAME b.example.org.", "b.example.org. 60 A 198.51.100.1"), []string{"198.51.100.1"}, 5},
		"any order, case":  {rrs(t, "B.example.org. 60 A 198.51.100.1", "A.example.org. 90 CNAME b.EXAMPLE.org."), []string{"198.51.100.1"}, 60},
		"out of the chain": {rrs(t, "a.example.org. 60 A 198.51.100.1", "evil.example.net. 60 A 198.51.100.66"), []string{"198.51.100.1"}, 60},
		"loop":             {rrs(t, "a.example.org. 60 CNAME b.example.org.", "b.example.org. 60 CNAME a.example.org."), nil, 0},
		"dangling":         {rrs(t, "a.example.org. 60 CNAME b.example.org."), nil, 60},
		"other type":       {rrs(t, "a.example.org. 60 AAAA 2001:db8::1"), nil, ^uint32(0)},
		"other class":      {rrs(t, "a.example.org. 60 CH A 198.51.100.1"), nil, ^uint32(0)},
	} {
		m := new(dns.Msg).SetQuestion("A.example.org.", dns.TypeA)
		m.Response, m.Compress, m.Answer = true, true, c.in
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseResult(b, m.Id, "a.example.org", A)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		ttl := r.ttl
		var text []string
		for _, a := range r.addrs {
			text = append(text, a.String())
		}
		if !slices.Equal(text, c.want) || ttl != c.ttl {
			t.Errorf("%s: %v %d, want %v %d", what, text, ttl, c.want, c.ttl)
		}
	}
}

// An extended code (RFC 6891 §6.1.3) is no success, and a name with odd bytes is
// text like any other.
func TestResultCodes(t *testing.T) {
	for _, c := range []struct{ rcode, want int }{{dns.RcodeSuccess, 0}, {dns.RcodeNameError, 3}, {dns.RcodeBadVers, 16}} {
		m := new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA)
		m.Response, m.Rcode = true, c.rcode
		m.SetEdns0(ednsSize, false)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := parseResult(b, m.Id, "a.example.org", A); err != nil || int(r.code) != c.want {
			t.Errorf("code %d read as %d, %v", c.rcode, r.code, err)
		}
	}
	b, err := new(dns.Msg).SetQuestion(`a\009\200\\B.example.org.`, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, code, err := parseQuery(b)
	if want := `a\009\200\092B.example.org.`; q.name != want || code != success || err != nil {
		t.Errorf("%q, %v, %v; want %q", q.name, code, err, want)
	}
}

func TestCacheJoinsEqualQuestions(t *testing.T) {
	var c cache
	c.init()
	var asked atomic.Int32
	release := make(chan struct{})
	ask := func(ctx context.Context, k key) (Answer, error) {
		asked.Add(1)
		<-release
		return Answer{Exists: true, Expires: time.Now().Add(time.Minute)}, nil
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if a, err := c.get(context.Background(), nil, key{name(t, "a.example.org"), A}, ask); err != nil || !a.Exists {
				t.Error(a, err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	close(release)
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestQuestionsToUpstreamAreBounded: clients that ask and go away leave no more
// questions under way than their room has places, and another room has its own.
func TestQuestionsToUpstreamAreBounded(t *testing.T) {
	var c cache
	c.init()
	release, began := make(chan struct{}), make(chan struct{}, 100)
	ask := func(context.Context, key) (Answer, error) {
		began <- struct{}{}
		<-release
		return Answer{Exists: true, Expires: time.Now().Add(time.Minute)}, nil
	}
	pool := share.NewPool(8, 2)
	first, second := pool.Room(), pool.Room()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	refused := 0
	for i := range 50 {
		if _, err := c.get(gone, first, key{name(t, fmt.Sprintf("n%d.example.org", i)), A}, ask); errors.Is(err, errAsking) {
			refused++
		}
	}
	if refused != 44 {
		t.Errorf("%d questions were refused, want 44", refused)
	}
	done := make(chan error)
	go func() {
		_, err := c.get(t.Context(), second, key{name(t, "other.example.org"), A}, ask)
		done <- err
	}()
	for range 7 {
		<-began
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("another room: %v", err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	var c cache
	c.init()
	ask := func(context.Context, key) (Answer, error) { return Answer{Expires: time.Now().Add(time.Hour)}, nil }
	for i := range maxCached + 500 {
		c.get(context.Background(), nil, key{name(t, fmt.Sprintf("n%d.example.org", i)), A}, ask)
	}
	if n := len(c.done); n > maxCached {
		t.Errorf("%d entries", n)
	}
	fail := func(context.Context, key) (Answer, error) { return Answer{}, errors.New("no") }
	c.get(context.Background(), nil, key{name(t, "failed.example.org"), A}, fail)
	if _, ok := c.peek(key{name(t, "failed.example.org"), A}); ok {
		t.Error("a failure was cached")
	}
}

func TestPinsAreBounded(t *testing.T) {
	var p Pins
	pairs := func() (n int) {
		for _, names := range p.addrs {
			n += len(names)
		}
		return n
	}
	addr := netip.MustParseAddr("2001:db8::")
	for i := range maxPins + 5000 {
		if i%3 != 2 { // some addresses have two names
			addr = addr.Next()
		}
		p.Add(name(t, fmt.Sprintf("n%d.example.org", i)), []netip.Addr{addr}, time.Minute)
	}
	if got := pairs(); got > maxPins || got < maxPins*7/8 || got != p.pairs {
		t.Errorf("%d pins, counted as %d", got, p.pairs)
	}
	for i := range 200 {
		p.Add(name(t, fmt.Sprintf("n%d.example.org", i)), []netip.Addr{addr}, time.Minute)
	}
	if got := p.Names(addr); len(got) > maxNamesOfAddr || !slices.Contains(got, name(t, "n199.example.org")) {
		t.Errorf("%d names of one address: %v", len(got), got)
	}
	if got := pairs(); got != p.pairs {
		t.Errorf("%d pins, counted as %d", got, p.pairs)
	}
}

// An upstream's answer to another question, or with another id, is nobody's.
func TestForgedAnswersAreIgnored(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go func() {
		buf := make([]byte, 512)
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		var q dns.Msg
		q.Unpack(buf[:n])
		send := func(change func(*dns.Msg)) {
			m := new(dns.Msg).SetReply(&q)
			m.Answer = rrs(t, "a.example.org. 60 A 198.51.100.66")
			change(m)
			b, _ := m.Pack()
			pc.WriteTo(b, from)
		}
		send(func(m *dns.Msg) { m.Id++ })
		send(func(m *dns.Msg) { m.Question[0].Name = "b.example.org." })
		send(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA })
		send(func(m *dns.Msg) { m.Response = false })
		pc.WriteTo([]byte("garbage"), from)
		send(func(m *dns.Msg) { m.Answer = rrs(t, "a.example.org. 60 A 198.51.100.10") })
	}()
	var d net.Dialer
	r := NewResolver(fixed(netip.MustParseAddrPort(pc.LocalAddr().String())), func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		return d.DialContext(ctx, network, to.String())
	})
	a, err := r.Lookup(context.Background(), nil, name(t, "a.example.org"), A)
	if err != nil || len(a.Addrs) != 1 || a.Addrs[0].String() != "198.51.100.10" {
		t.Errorf("%v %v", a, err)
	}
}

func server(t testing.TB) *Server {
	p, err := firewall.ParseHostPattern("**.example.org")
	if err != nil {
		t.Fatal(err)
	}
	rp := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: []firewall.Rule{{Host: p, Ports: []firewall.PortRange{{First: 443, Last: 443}}}}}
	room := &policy.Room{RoomPolicy: rp, Matcher: rp.Compile()}
	s := &Server{
		Room: func() *policy.Room { return room }, IPv6: func() bool { return true }, Pins: &Pins{}, Report: func(events.Event) {},
		Answer: func(*firewall.Matcher, firewall.Name, netip.Addr) firewall.Decision {
			return firewall.Decision{Allowed: true}
		},
		Resolver: NewResolver(fixed(), nil),
	}
	s.Resolver.cache.done[key{name(t, "api.example.org"), A}] = Answer{Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.10")}, Exists: true, Expires: time.Now().Add(time.Hour)}
	return s
}

// FuzzServe: whatever a worker sends, the answer is bounded, belongs to the
// question, and a denied name never has an address.
func FuzzServe(f *testing.F) {
	for _, q := range []string{"api.example.org.", "denied.example.net.", "ready.workshop.internal.", "."} {
		b, _ := new(dns.Msg).SetQuestion(q, dns.TypeA).Pack()
		f.Add(b, false)
		m := new(dns.Msg).SetQuestion(q, dns.TypeHTTPS)
		m.SetEdns0(4096, true)
		b, _ = m.Pack()
		f.Add(b, true)
	}
	s := server(f)
	f.Fuzz(func(t *testing.T, in []byte, tcp bool) {
		out, _ := s.Serve(context.Background(), in, tcp, true)
		if out == nil {
			return
		}
		if !tcp && len(out) > ednsSize {
			t.Fatalf("%d bytes over UDP", len(out))
		}
		var m dns.Msg
		if err := m.Unpack(out); err != nil || !m.Response || out[0] != in[0] || out[1] != in[1] {
			t.Fatalf("%v %v", &m, err)
		}
		for _, rr := range m.Answer {
			n := dns.CanonicalName(rr.Header().Name)
			if n != "api.example.org." && n != "ready.workshop.internal." && n != "localhost." && !dns.IsSubDomain("localhost.", n) {
				t.Fatalf("an address for %s", n)
			}
		}
	})
}

// FuzzParseResult: an upstream's bytes never crash, and never answer another
// question.
func FuzzParseResult(f *testing.F) {
	m := new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA)
	m.Response = true
	m.Answer = rrs(f, "a.example.org. 60 CNAME b.example.org.", "b.example.org. 60 A 198.51.100.1")
	b, _ := m.Pack()
	f.Add(b)
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := parseResult(in, m.Id, "a.example.org", A)
		if err == nil && len(r.addrs) > maxAddrs {
			t.Fatalf("%d addresses", len(r.addrs))
		}
	})
}

func BenchmarkServeCached(b *testing.B) {
	s := server(b)
	q, _ := new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA).Pack()
	b.ReportAllocs()
	for b.Loop() {
		if out, ok := s.Serve(context.Background(), q, false, true); !ok || out == nil {
			b.Fatal("not from the cache")
		}
	}
}
