package dns

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// upstream is a resolver that notes what it gets, byte by byte, and answers
// what a test wants it to.
type upstream struct {
	testing.TB
	addr   netip.AddrPort
	answer func(network string, q *dns.Msg) []*dns.Msg

	mu  sync.Mutex
	raw []string // network and bytes
}

func newUpstream(t testing.TB, answer func(network string, q *dns.Msg) []*dns.Msg) *upstream {
	t.Helper()
	u := &upstream{TB: t, answer: answer}
	l, pc := testutil.ListenTwice(t)
	u.addr = netip.MustParseAddrPort(pc.LocalAddr().String())
	t.Cleanup(func() { pc.Close(); l.Close() })
	go func() {
		for buf := make([]byte, 64<<10); ; {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			for _, b := range u.serve("udp", buf[:n]) {
				pc.WriteTo(b, from)
			}
		}
	}()
	go testnet.Serve(l, func(c net.Conn) {
		var size [2]byte
		for {
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(c, q); err != nil {
				return
			}
			for _, b := range u.serve("tcp", q) {
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
			}
		}
	})
	return u
}

func (u *upstream) serve(network string, b []byte) (out [][]byte) {
	u.mu.Lock()
	u.raw = append(u.raw, network+" "+hex.EncodeToString(b))
	u.mu.Unlock()
	q := new(dns.Msg)
	if err := q.Unpack(b); err != nil {
		u.Errorf("a query that isn't one: %x: %v", b, err)
		return nil
	}
	for _, m := range u.answer(network, q) {
		b, err := m.Pack()
		if err != nil {
			u.Error(err)
		}
		out = append(out, b)
	}
	return out
}

func (u *upstream) queries() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.raw)
}

func dialer() Dial {
	var d net.Dialer
	return func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		return d.DialContext(ctx, network, to.String())
	}
}

// records answers with zone-file lines.
func records(t testing.TB, lines ...string) func(string, *dns.Msg) []*dns.Msg {
	answer := rrs(t, lines...)
	return func(_ string, q *dns.Msg) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Answer = answer
		return []*dns.Msg{m}
	}
}

// asking is a server of a room with an upstream.
func asking(t testing.TB, addrs ...netip.AddrPort) *Server {
	s := server(t)
	s.Resolver = NewResolver(fixed(addrs...), dialer())
	return s
}

func fixed(servers ...netip.AddrPort) func() []netip.AddrPort {
	return func() []netip.AddrPort { return servers }
}

func (s *Server) ask(t testing.TB, q *dns.Msg, tcp bool) *dns.Msg {
	t.Helper()
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	out, ok := s.Serve(context.Background(), b, tcp, false)
	m := new(dns.Msg)
	if err := m.Unpack(out); err != nil || !ok {
		t.Fatalf("%x %v: %v", out, ok, err)
	}
	return m
}

// D6: whatever a worker puts into a question, what leaves is the guard's own
// message: one question in lower case, an id of its own, EDNS with 1232 bytes
// and no option. The worker sees its own spelling.
func TestQueriesAreTheGuardsOwn(t *testing.T) {
	u := newUpstream(t, records(t, "api.example.org. 300 IN A 198.51.100.10"))
	var sent []string
	for i := range 8 {
		s := asking(t, u.addr)
		q := new(dns.Msg).SetQuestion("aPi.ExAmPlE.oRg.", dns.TypeA)
		q.Id = 0x4242
		q.CheckingDisabled, q.AuthenticatedData, q.Zero = true, true, true
		q.SetEdns0(4096, true)
		q.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("out you go")},
			&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(198, 51, 100, 0)},
		}
		q.Extra = append(q.Extra, rrs(t, `x.example.org. 60 IN TXT "and this"`)...)
		m := s.ask(t, q, i%2 == 1)
		if m.Id != 0x4242 || len(m.Answer) != 1 || m.Answer[0].Header().Name != "aPi.ExAmPlE.oRg." || m.Question[0].Name != "aPi.ExAmPlE.oRg." {
			t.Errorf("%v", m)
		}
		if ttl := m.Answer[0].Header().Ttl; ttl > maxClientTTL {
			t.Errorf("a TTL of %d s", ttl)
		}
		sent = u.queries()
	}
	ids := map[string]bool{}
	for _, raw := range sent {
		network, b, _ := strings.Cut(raw, " ")
		ids[b[:4]] = true
		// flags RD; 1 question, 1 additional; the name; A, IN; OPT with 1232, no flags, no data (RFC 1035 §4.1, RFC 6891 §6.1.2)
		want := "0100" + "0001000000000001" + "03617069076578616d706c65036f726700" + "00010001" + "00002904d0000000000000"
		if network != "udp" || b[4:] != want {
			t.Errorf("%s %s, want %s", network, b[4:], want)
		}
	}
	if len(sent) != 8 || len(ids) < 6 || ids["4242"] {
		t.Errorf("%d queries with the ids %v", len(sent), ids)
	}
}

// D10, D9: only what the chain inside one answer reaches is answered and
// pinned; addresses that may not be dialled are taken out, with an event.
func TestOnlyTheChainIsPinned(t *testing.T) {
	u := newUpstream(t, records(t,
		"api.example.org. 300 IN CNAME cdn.example.net.", "cdn.example.net. 20 IN A 198.51.100.20",
		"evil.example.net. 300 IN A 198.51.100.66", "api.example.org. 300 IN AAAA 2001:db8:1::66"))
	s := asking(t, u.addr)
	m := s.ask(t, new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA), false)
	if len(m.Answer) != 1 || m.Answer[0].String() != "api.example.org.\t19\tIN\tA\t198.51.100.20" && m.Answer[0].String() != "api.example.org.\t20\tIN\tA\t198.51.100.20" {
		t.Errorf("%v", m.Answer)
	}
	for addr, want := range map[string]int{"198.51.100.20": 1, "198.51.100.66": 0, "2001:db8:1::66": 0} {
		if names := s.Pins.Names(netip.MustParseAddr(addr)); len(names) != want {
			t.Errorf("%s is pinned for %v", addr, names)
		}
	}
}

// A resolver that truncates for ever, over UDP and TCP, is answered SERVFAIL,
// and so is one that isn't there: at once, and again without a packet.
func TestBadResolversFailQuickly(t *testing.T) {
	truncate := func(_ string, q *dns.Msg) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Truncated = true
		return []*dns.Msg{m}
	}
	refuse := func(_ string, q *dns.Msg) []*dns.Msg {
		return []*dns.Msg{new(dns.Msg).SetRcode(q, dns.RcodeRefused)}
	}
	for what, c := range map[string]struct {
		answer func(string, *dns.Msg) []*dns.Msg
		most   int // queries
		within time.Duration
	}{
		"truncates for ever": {truncate, 4, time.Second},
		"refuses":            {refuse, 2, time.Second},
		"is silent":          {func(string, *dns.Msg) []*dns.Msg { return nil }, 2, 1950 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, c.answer)
			s := asking(t, u.addr)
			for range 3 {
				start := testutil.Now()
				if m := s.ask(t, new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA), false); m.Rcode != dns.RcodeServerFailure {
					t.Errorf("%v", m)
				}
				if d := testutil.Since(start); d > c.within {
					t.Errorf("after %s", d)
				}
			}
			if got := u.queries(); len(got) > c.most {
				t.Errorf("%d queries: %v", len(got), got)
			}
		})
	}
	t.Run("isn't there", func(t *testing.T) {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gone := netip.MustParseAddrPort(pc.LocalAddr().String())
		pc.Close()
		s := asking(t, gone)
		start := testutil.Now()
		if m := s.ask(t, new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA), false); m.Rcode != dns.RcodeServerFailure || testutil.Since(start) > time.Second {
			t.Errorf("%v after %s", m, testutil.Since(start))
		}
	})
}

// A silent first server costs the first look-up its try, and the others
// nothing; a client of 2 s gets its answer each time.
func TestSilentServerIsAskedLast(t *testing.T) {
	silent := newUpstream(t, func(string, *dns.Msg) []*dns.Msg { return nil })
	good := newUpstream(t, func(_ string, q *dns.Msg) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Answer = rrs(t, q.Question[0].Name+" 60 IN A 198.51.100.10")
		return []*dns.Msg{m}
	})
	s := asking(t, silent.addr, good.addr)
	for i := range 5 {
		start := testutil.Now()
		m := s.ask(t, new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA), false)
		if d := testutil.Since(start); len(m.Answer) != 1 || d > 1500*time.Millisecond || i > 0 && d > 500*time.Millisecond {
			t.Errorf("%d: %v after %s", i, m.Answer, d)
		}
	}
	if n := len(silent.queries()); n != 1 {
		t.Errorf("the silent one was asked %d times", n)
	}
}

// D11: a zone that answers with other addresses each time pins the last ones
// only, and a TTL below a second or above an hour is neither.
func TestPinsOfOneNameAreBounded(t *testing.T) {
	var p Pins
	n := name(t, "rotates.example.org")
	addr := netip.MustParseAddr("198.51.100.0")
	for range 10 {
		var addrs []netip.Addr
		for range 20 {
			addrs = append(addrs, addr)
			addr = addr.Next()
		}
		p.Add(n, addrs, time.Minute)
		time.Sleep(time.Millisecond) // the order is by time
	}
	for i, a := 0, netip.MustParseAddr("198.51.100.0"); i < 200; i, a = i+1, a.Next() {
		if got, want := len(p.Names(a)), 0; i >= 200-60 && got != 1 || i < 200-80 && got != want {
			t.Errorf("%s: pinned for %d names", a, got)
		}
	}
	if p.pairs != maxAddrsOfName || len(p.names[n]) != maxAddrsOfName {
		t.Errorf("%d pins, %d addresses of the name", p.pairs, len(p.names[n]))
	}
	for in, want := range map[uint32]time.Duration{0: minTTL, 30: 30 * time.Second, 86400: maxTTL} {
		a := answer(result{code: success, addrs: []netip.Addr{addr}, ttl: in})
		if left := time.Until(a.Expires); left > want || left < want-time.Second {
			t.Errorf("a TTL of %d s is kept for %s", in, left)
		}
	}
}

// D11: a pin outlives what the client was told, by a grace, and ends.
func TestPinLifetimes(t *testing.T) {
	for _, c := range []struct{ ttl, want time.Duration }{
		{0, minPin + pinGrace}, {time.Second, minPin + pinGrace}, {5 * time.Minute, 5*time.Minute + pinGrace}, {24 * time.Hour, maxPin + pinGrace},
	} {
		var p Pins
		n, a := name(t, "db.example.org"), netip.MustParseAddr("198.51.100.32")
		p.Add(n, []netip.Addr{a}, c.ttl)
		if left := time.Until(p.addrs[a][n].until); left > c.want || left < c.want-time.Second || left < maxClientTTL*time.Second {
			t.Errorf("a TTL of %s is pinned for %s", c.ttl, left)
		}
		// Asked again, it lives again; not asked, it ends.
		p.addrs[a][n] = pin{until: time.Now().Add(-time.Millisecond)}
		if got := p.Names(a); len(got) != 0 {
			t.Errorf("an old pin: %v", got)
		}
		p.Add(n, []netip.Addr{a}, c.ttl)
		if got := p.Names(a); len(got) != 1 || p.pairs != 1 {
			t.Errorf("asked again: %v, %d pins", got, p.pairs)
		}
	}
}
