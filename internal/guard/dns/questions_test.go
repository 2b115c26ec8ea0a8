package dns

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
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

// in makes a server's room another one.
func (s *Server) in(rp firewall.RoomPolicy) {
	room := &policy.Room{RoomPolicy: rp, Matcher: rp.Compile()}
	s.Room = func() *policy.Room { return room }
}

// D6, D7: questions that are none, or not for names and addresses, are answered
// with the code that says so, or not at all, and never cause a packet: the
// server here has no upstream.
func TestOddQuestions(t *testing.T) {
	question := func(change func(*dns.Msg)) *dns.Msg {
		m := new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA)
		change(m)
		return m
	}
	for what, c := range map[string]struct {
		q     *dns.Msg
		rcode int // -1: silence
	}{ // those that are refused are reported once (B28), and equally, however they look
		"a response":     {question(func(m *dns.Msg) { m.Response = true }), -1},
		"a notification": {question(func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), dns.RcodeNotImplemented},
		"an update":      {question(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		"no question":    {question(func(m *dns.Msg) { m.Question = nil }), dns.RcodeFormatError},
		"two questions":  {question(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		"class CHAOS": {question(func(m *dns.Msg) {
			m.Question[0] = dns.Question{Name: "version.bind.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}
		}), dns.RcodeRefused},
		"class ANY":     {question(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }), dns.RcodeRefused},
		"HTTPS":         {question(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeHTTPS }), dns.RcodeSuccess},
		"SVCB":          {question(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeSVCB }), dns.RcodeSuccess},
		"TXT":           {question(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeTXT }), dns.RcodeSuccess},
		"ANY":           {question(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeANY }), dns.RcodeSuccess},
		"AXFR":          {question(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAXFR }), dns.RcodeSuccess},
		"the root":      {question(func(m *dns.Msg) { m.Question[0].Name = "." }), dns.RcodeNameError},
		"odd bytes":     {question(func(m *dns.Msg) { m.Question[0].Name = `a\000b.example.org.` }), dns.RcodeNameError},
		"an underscore": {question(func(m *dns.Msg) { m.Question[0].Name = "_dns.resolver.arpa." }), dns.RcodeNameError},
		"a number":      {question(func(m *dns.Msg) { m.Question[0].Name = "2130706433." }), dns.RcodeNameError},
		"an address":    {question(func(m *dns.Msg) { m.Question[0].Name = "198.51.100.10." }), dns.RcodeNameError},
	} {
		b, err := c.q.Pack()
		if err != nil {
			t.Fatal(what, err)
		}
		srv := server(t)
		var told []events.Event
		srv.Report = func(e events.Event) { told = append(told, e) }
		out, ok := srv.Serve(context.Background(), b, false, true)
		want := map[int]string{-1: "malformed", dns.RcodeFormatError: "malformed", dns.RcodeNotImplemented: "unsupported", dns.RcodeRefused: "unsupported"}[c.rcode]
		if want != "" && (len(told) != 1 || told[0] != events.Event{Kind: events.DNS, Verdict: events.Deny, Reason: want, Port: 53, Protocol: "dns"}) {
			t.Errorf("%s: reported as %+v", what, told)
		}
		if c.rcode == dns.RcodeSuccess && len(told) != 0 {
			t.Errorf("%s: reported as %+v", what, told)
		}
		if !ok {
			t.Errorf("%s: would ask upstream", what)
			continue
		}
		if c.rcode < 0 {
			if out != nil {
				t.Errorf("%s: answered %x", what, out)
			}
			continue
		}
		var m dns.Msg
		if err := m.Unpack(out); err != nil || m.Rcode != c.rcode || len(m.Answer) != 0 || m.Id != c.q.Id {
			t.Errorf("%s: %v %v", what, &m, err)
		}
	}
}

// D13, D8: names of the room and its network, and what browsers ask about
// resolvers, are answered here, in every mode; a line that names one has it
// looked up.
func TestSpecialNames(t *testing.T) {
	asked := &atomic.Int32{}
	u := newUpstream(t, func(_ string, q *dns.Msg) []*dns.Msg {
		asked.Add(1)
		m := new(dns.Msg).SetReply(q)
		m.Answer = rrs(t, q.Question[0].Name+" 60 IN A 198.51.100.10")
		return []*dns.Msg{m}
	})
	web := firewall.DefaultAllowPorts()
	var lines []firewall.Rule
	for _, s := range []string{"printer.local", "intranet", "mask.icloud.com", "**.example.org", "abc.onion"} {
		lines = append(lines, firewall.Rule{Host: name2pattern(t, s), Ports: web})
	}
	modes := map[string]firewall.RoomPolicy{
		"restricted": {Mode: firewall.Restricted},
		"learning":   {Mode: firewall.Restricted, Learn: true},
		"open":       {Mode: firewall.Open},
		"lines":      {Mode: firewall.Restricted, Allow: lines},
	}
	for _, c := range []struct {
		name   string
		answer string // of every mode but lines: an address, or "" for NXDOMAIN
		lines  string
	}{
		{"localhost", "127.0.0.1", "127.0.0.1"},
		{"me.localhost", "127.0.0.1", "127.0.0.1"},
		{firewall.ReadyName, "127.0.0.1", "127.0.0.1"},
		{"intranet", "", "198.51.100.10"},
		{"db", "", ""},
		{"wpad", "", ""},
		{"printer.local", "", "198.51.100.10"},
		{"other.local", "", ""},
		{"10.100.51.198.in-addr.arpa", "", ""},
		{"1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "", ""},
		{"resolver.arpa", "", ""},
		{"no.invalid", "", ""},
		{"abc.onion", "", ""},
		{"router.home.arpa", "", ""},
		{"use-application-dns.net", "", ""},
		{"mask.icloud.com", "", "198.51.100.10"},
		{"mask-h2.icloud.com", "", ""},
		{"api.example.org.corp.example", "", ""}, // a search domain, in lines
	} {
		for mode, rp := range modes {
			if mode != "lines" && mode != "restricted" && c.name == "api.example.org.corp.example" {
				continue
			}
			s := asking(t, u.addr)
			s.in(rp)
			var denied []events.Event
			s.Report = func(e events.Event) { denied = append(denied, e) }
			want := c.answer
			if mode == "lines" {
				want = c.lines
			}
			before := asked.Load()
			for _, kind := range []uint16{dns.TypeA, dns.TypePTR} {
				m := s.ask(t, new(dns.Msg).SetQuestion(c.name+".", kind), false)
				switch {
				case want == "" && (m.Rcode != dns.RcodeNameError || len(m.Answer) != 0 || asked.Load() != before):
					t.Errorf("%s: %s is answered %v", mode, c.name, m)
				case want == "" && (len(denied) == 0 || denied[0].Reason == firewall.ReasonName != strings.HasSuffix(c.name, ".corp.example") ||
					denied[0].Reason != firewall.ReasonName && denied[0].Suggest != ""):
					t.Errorf("%s: %s is reported as %+v", mode, c.name, denied)
				case want != "" && kind == dns.TypeA && (len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != want):
					t.Errorf("%s: %s is answered %v", mode, c.name, m)
				case want != "" && kind == dns.TypePTR && (m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0):
					t.Errorf("%s: %s PTR is answered %v", mode, c.name, m)
				}
			}
		}
	}
}

// Questions over one TCP connection, all sent at once, are answered in turn;
// one that is too long ends the connection.
func TestPipelining(t *testing.T) {
	s := server(t)
	near, far := net.Pipe()
	defer near.Close()
	go func() { s.ServeConn(context.Background(), far); far.Close() }()
	const n = 50
	go func() {
		for i := range n {
			q := new(dns.Msg).SetQuestion("api.example.org.", dns.TypeA)
			q.Id = uint16(i)
			b, _ := q.Pack()
			near.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
		}
		near.Write([]byte{0xff, 0xff})
	}()
	c := dns.Conn{Conn: near}
	near.SetDeadline(time.Now().Add(5 * time.Second))
	for i := range n {
		if m, err := c.ReadMsg(); err != nil || m.Id != uint16(i) || len(m.Answer) != 1 {
			t.Fatalf("%d: %v %v", i, m, err)
		}
	}
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("64 KiB of question: %v", err)
	}
}

// B60: a room's flood of questions over UDP costs a bounded number of look-ups
// at a time, the rest are answered at once, and what needs no upstream is
// answered meanwhile.
func TestUDPFloodIsBounded(t *testing.T) {
	release := make(chan struct{})
	var now, most atomic.Int32
	u := newUpstream(t, func(_ string, q *dns.Msg) []*dns.Msg { return nil })
	s := asking(t, u.addr)
	dial := s.Resolver.dial
	s.Resolver.dial = Dial(func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		<-release
		return dial(ctx, network, to)
	})
	s.Resolver.cache.done[key{name(t, "api.example.org"), A}] = Answer{Exists: true, Expires: time.Now().Add(time.Hour)}
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	const maxWaiting = 256
	s.Waiting = share.NewPool(maxWaiting, 1).Room()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.ServeUDP(ctx, pc) })
	defer func() { cancel(); pc.Close(); close(release); wg.Wait() }()
	c, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func(id int, name string) {
		q := new(dns.Msg).SetQuestion(name, dns.TypeA)
		q.Id = uint16(id)
		b, _ := q.Pack()
		c.Write(b)
	}
	codes := map[int]int{}
	c.SetDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 1500)
	const n = maxWaiting + 100
	for i := range n {
		send(i, "n"+strconv.Itoa(i)+".example.org.")
		if i < maxWaiting { // one at a time, so that no socket's buffer overflows
			for end := time.Now().Add(5 * time.Second); now.Load() <= int32(i) && time.Now().Before(end); {
				time.Sleep(100 * time.Microsecond)
			}
			continue
		}
		size, err := c.Read(buf)
		var m dns.Msg
		if err == nil {
			err = m.Unpack(buf[:size])
		}
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		codes[m.Rcode]++
	}
	if codes[dns.RcodeServerFailure] != n-maxWaiting {
		t.Errorf("answers by code: %v", codes)
	}
	send(9999, "api.example.org.")
	if size, err := c.Read(buf); err != nil || binary.BigEndian.Uint16(buf[:size]) != 9999 {
		t.Errorf("a known name: %v", err)
	}
	if got := most.Load(); got > maxWaiting {
		t.Errorf("%d look-ups at a time", got)
	}
}
