package testnet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Record is one part of an answer; see [A], [CNAME], [NXDomain], [Silent].
type Record struct {
	Type  string `json:"type"` // A, AAAA, CNAME, RAW, NXDOMAIN, SERVFAIL, SILENT
	Value string `json:"value,omitempty"`
	TTL   uint32 `json:"ttl"`
	// Delay is waited before the answer, in milliseconds.
	Delay int `json:"delay,omitempty"`
}

// A is an address record (A or AAAA) with a TTL of 60 s.
func A(addr string) Record {
	a := netip.MustParseAddr(addr)
	if a.Is4() {
		return Record{Type: "A", Value: addr, TTL: 60}
	}
	return Record{Type: "AAAA", Value: addr, TTL: 60}
}

// CNAME points to another name, whose records follow in the same answer if the
// zone has them.
func CNAME(target string) Record { return Record{Type: "CNAME", Value: target, TTL: 60} }

// Raw is a record in zone-file form, put into the answer section as it stands,
// for instance one that the question didn't ask for.
func Raw(rr string) Record { return Record{Type: "RAW", Value: rr} }

// NXDomain, ServFail and Silent are answers without records; Silent sends none.
var (
	NXDomain = Record{Type: "NXDOMAIN"}
	ServFail = Record{Type: "SERVFAIL"}
	Silent   = Record{Type: "SILENT"}
)

// For returns the record with another TTL, in seconds.
func (r Record) For(ttl uint32) Record { r.TTL = ttl; return r }

// Query is one DNS query as it arrived.
type Query struct {
	Server   string `json:"server"`   // address that it was sent to
	Protocol string `json:"protocol"` // udp or tcp
	Name     string `json:"name"`     // as written, with its case and final dot
	Type     string `json:"type"`
	EDNS     int    `json:"edns"`    // UDP size of the OPT record; 0: none
	Options  int    `json:"options"` // number of EDNS options
	Bytes    []byte `json:"bytes"`
}

type zone struct {
	mu      sync.Mutex
	names   map[string][]Record
	queries []Query
}

func (z *zone) init() {
	z.names = map[string][]Record{
		"allowed.example.org.": {A(Allowed), A(Allowed6)},
		"denied.example.org.":  {A(Denied), A(Denied6)},
		"evil.example.net.":    {A(Evil), A(Evil6)},
		"ssh.example.org.":     {A(SSH), A(SSH6)},
		"db.example.org.":      {A("198.51.100.32"), A("2001:db8:1::32")},
	}
}

func (z *zone) forget() {
	z.mu.Lock()
	z.queries = nil
	z.mu.Unlock()
}

// Answer sets what both DNS servers say about a name. No record at all means
// that the name exists without records; names never set don't exist.
func (in *Internet) Answer(name string, records ...Record) {
	in.zone.set(name, records, true)
}

// set says what a name has, or that it doesn't exist, and returns what it had.
func (z *zone) set(name string, records []Record, exists bool) (before []Record) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name = dns.CanonicalName(name)
	before = z.names[name]
	if exists {
		z.names[name] = records
	} else {
		delete(z.names, name)
	}
	return before
}

// Queries returns the DNS queries so far, in order.
func (in *Internet) Queries() []Query {
	in.zone.mu.Lock()
	defer in.zone.mu.Unlock()
	return slices.Clone(in.zone.queries)
}

// Asked returns how many queries for a name arrived at any DNS server.
func (in *Internet) Asked(name string) int {
	n := 0
	for _, q := range in.Queries() {
		if dns.CanonicalName(q.Name) == dns.CanonicalName(name) {
			n++
		}
	}
	return n
}

func (in *Internet) startDNS() error {
	addrs := []string{DNS, DNS2}
	if in.IPv6 {
		addrs = append(addrs, DNSv6)
	}
	lc := net.ListenConfig{Control: freebind}
	for _, a := range addrs {
		addr := net.JoinHostPort(a, "53")
		pc, err := lc.ListenPacket(context.Background(), "udp", addr)
		if err != nil {
			return err
		}
		l, err := in.listen(addr)
		if err != nil {
			pc.Close()
			return err
		}
		for _, s := range []*dns.Server{{PacketConn: pc, UDPSize: 4096}, {Listener: l}} {
			s.Handler = dns.HandlerFunc(in.dns)
			up := make(chan struct{})
			s.NotifyStartedFunc = func() { close(up) }
			go s.ActivateAndServe()
			<-up
			in.onClose(func() { s.Shutdown() })
		}
	}
	return nil
}

func (in *Internet) dns(w dns.ResponseWriter, r *dns.Msg) {
	if len(r.Question) != 1 {
		return
	}
	q := r.Question[0]
	in.record(w, r)
	m := new(dns.Msg)
	m.SetReply(r)
	m.RecursionAvailable = true
	if !in.zone.fill(m, q) {
		return
	}
	if w.LocalAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if o := r.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

func (in *Internet) record(w dns.ResponseWriter, r *dns.Msg) {
	q := Query{
		Server: addrPort(w.LocalAddr()).Addr().String(), Protocol: w.LocalAddr().Network(),
		Name: r.Question[0].Name, Type: dns.TypeToString[r.Question[0].Qtype],
	}
	if o := r.IsEdns0(); o != nil {
		q.EDNS, q.Options = int(o.UDPSize()), len(o.Option)
	}
	q.Bytes, _ = r.Pack()
	in.zone.mu.Lock()
	if len(in.zone.queries) < 100_000 {
		in.zone.queries = append(in.zone.queries, q)
	}
	in.zone.mu.Unlock()
}

// fill writes the answer to q into m; false means that none is sent.
func (z *zone) fill(m *dns.Msg, q dns.Question) bool {
	name := dns.CanonicalName(q.Name)
	for range 10 { // follow CNAMEs as a recursive server does
		z.mu.Lock()
		records, ok := z.names[name]
		z.mu.Unlock()
		if !ok {
			if len(m.Answer) == 0 {
				m.Rcode = dns.RcodeNameError
			}
			return true
		}
		next := ""
		for _, r := range records {
			if r.Delay > 0 {
				time.Sleep(time.Duration(r.Delay) * time.Millisecond)
			}
			h := dns.RR_Header{Name: name, Class: dns.ClassINET, Ttl: r.TTL}
			if len(m.Answer) == 0 {
				h.Name = q.Name
			}
			switch r.Type {
			case "SILENT":
				return false
			case "NXDOMAIN":
				m.Rcode = dns.RcodeNameError
			case "SERVFAIL":
				m.Rcode = dns.RcodeServerFailure
			case "A":
				if q.Qtype == dns.TypeA {
					h.Rrtype = dns.TypeA
					m.Answer = append(m.Answer, &dns.A{Hdr: h, A: net.ParseIP(r.Value)})
				}
			case "AAAA":
				if q.Qtype == dns.TypeAAAA {
					h.Rrtype = dns.TypeAAAA
					m.Answer = append(m.Answer, &dns.AAAA{Hdr: h, AAAA: net.ParseIP(r.Value)})
				}
			case "CNAME":
				h.Rrtype = dns.TypeCNAME
				next = dns.CanonicalName(r.Value)
				m.Answer = append(m.Answer, &dns.CNAME{Hdr: h, Target: next})
			case "RAW":
				if rr, err := dns.NewRR(strings.TrimSpace(r.Value)); err == nil && rr != nil {
					m.Answer = append(m.Answer, rr)
				}
			}
		}
		if next == "" {
			return true
		}
		name = next
	}
	return true
}
