package dns

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/guard/events"
)

// hostile is a connection to an upstream that answers with bytes of somebody's
// choice, with the id of the query where they are long enough: whoever answers
// for a name knows it.
type hostile struct {
	net.Conn // nil: nothing else is called
	tcp      bool
	answer   []byte
	out      []byte
	queries  *int
}

func (h *hostile) Write(b []byte) (int, error) {
	*h.queries++
	q, a := b, append([]byte(nil), h.answer...)
	if h.tcp {
		q = q[2:]
	}
	if len(a) >= 2 {
		copy(a, q[:2])
	}
	if h.tcp {
		a = append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)
	}
	h.out = a
	return len(b), nil
}

func (h *hostile) Read(b []byte) (int, error) {
	if h.out == nil {
		return 0, io.EOF
	}
	n := copy(b, h.out)
	if h.out = h.out[n:]; !h.tcp || len(h.out) == 0 {
		h.out = nil
	}
	return n, nil
}

func (h *hostile) Close() error                { return nil }
func (h *hostile) SetDeadline(time.Time) error { return nil }

// FuzzServeHostile: a worker's bytes on one side, an upstream's on the other. A
// denied name asks nobody; what is answered belongs to the question, is bounded,
// has a short TTL, and every address is pinned for the name that was asked for.
func FuzzServeHostile(f *testing.F) {
	for _, name := range []string{"a.example.org.", "A.b.exAmple.org.", "denied.example.net.", "mask.icloud.com.", "x.local."} {
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS} {
			q := new(dns.Msg).SetQuestion(name, t)
			q.SetEdns0(4096, true)
			m := new(dns.Msg).SetReply(q)
			m.Question[0].Name = dns.CanonicalName(name)
			m.Answer = rrs(f, name+" 0 IN CNAME b.example.net.", "b.example.net. 7200 IN A 198.51.100.1", "b.example.net. 60 IN AAAA 2001:db8:1::1",
				"evil.example.net. 60 IN A 198.51.100.66", name+" 60 IN A 169.254.169.254", name+` 60 IN TXT "x"`)
			m.SetEdns0(1232, false)
			qb, _ := q.Pack()
			mb, _ := m.Pack()
			m.Truncated = true
			tb, _ := m.Pack()
			f.Add(qb, mb, mb, false)
			f.Add(qb, tb, mb, true)
			f.Add(qb, tb, tb, false)
		}
	}
	f.Fuzz(func(t *testing.T, question, udp, tcp []byte, overTCP bool) {
		if len(tcp) >= 64<<10 {
			return
		}
		queries := 0
		s := server(t)
		s.Resolver = NewResolver(fixed(netip.MustParseAddrPort("198.51.100.53:53")), func(_ context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
			if network == "tcp" {
				return &hostile{tcp: true, answer: tcp, queries: &queries}, nil
			}
			return &hostile{answer: udp, queries: &queries}, nil
		})
		var denied []events.Event
		s.Report = func(e events.Event) {
			if e.Verdict == events.Deny {
				denied = append(denied, e)
			}
		}
		out, ok := s.Serve(context.Background(), question, overTCP, false)
		if !ok {
			t.Fatal("not answered")
		}
		if len(denied) > 0 && queries > 0 {
			t.Fatalf("%d queries for what was denied: %+v", queries, denied)
		}
		if queries > 4 {
			t.Fatalf("%d queries", queries)
		}
		if out == nil {
			return
		}
		var q, m dns.Msg
		if err := m.Unpack(out); err != nil || !m.Response || !overTCP && len(out) > ednsSize {
			t.Fatalf("%x: %v", out, err)
		}
		if len(m.Answer) == 0 {
			return
		}
		// The library for tests is stricter than ours about what follows the
		// question; then there is nothing to compare with.
		if err := q.Unpack(question); err != nil || len(q.Question) == 0 {
			return
		}
		if m.Id != q.Id || len(m.Question) != 1 || m.Question[0] != q.Question[0] || len(m.Answer) > maxAddrs {
			t.Fatalf("%v\nfor %v", &m, &q)
		}
		for _, rr := range m.Answer {
			h := rr.Header()
			var addr netip.Addr
			switch v := rr.(type) {
			case *dns.A:
				addr, _ = netip.AddrFromSlice(v.A.To4())
			case *dns.AAAA:
				addr, _ = netip.AddrFromSlice(v.AAAA)
			}
			if !addr.IsValid() || h.Rrtype != q.Question[0].Qtype || h.Name != q.Question[0].Name || h.Ttl > maxClientTTL || h.Ttl == 0 {
				t.Fatalf("%v\nfor %v", &m, &q)
			}
			if !addr.IsLoopback() && len(s.Pins.Names(addr)) != 1 {
				t.Fatalf("%s isn't pinned: %v", addr, &m)
			}
		}
	})
}
