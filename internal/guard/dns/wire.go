// Package dns answers the look-ups of a room: by policy before anything is
// sent, with queries of the guard's own making, and with addresses that may be
// dialled only (B23).
package dns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// This file is the only one that knows the DNS library: its v1 will be archived
// some day.

// Type is the type of a question.
type Type uint16

// The types that are looked up. All others have no data.
const (
	A    = Type(dns.TypeA)
	AAAA = Type(dns.TypeAAAA)
)

// question is what a client asks.
type question struct {
	id      uint16
	name    string // as written, with the final dot
	kind    Type
	class   uint16
	rd      bool
	edns    bool
	udpSize int
}

// code is a response code (RFC 1035 §4.1.1, RFC 8914 for the text).
type code int

const (
	success   = code(dns.RcodeSuccess)
	formErr   = code(dns.RcodeFormatError)
	servFail  = code(dns.RcodeServerFailure)
	nxDomain  = code(dns.RcodeNameError)
	notImp    = code(dns.RcodeNotImplemented)
	refused   = code(dns.RcodeRefused)
	classINET = dns.ClassINET
)

// ednsSize is what the guard offers and sends at most over UDP (RFC 9715).
const ednsSize = 1232

// minUDP is what every client takes (RFC 1035 §4.2.1).
const minUDP = 512

var errDrop = errors.New("not a query")

// parseQuery reads a query. errDrop means that nothing is answered; another
// code than success that this is the answer.
func parseQuery(b []byte) (q question, c code, err error) {
	if len(b) < 12 || b[2]&0x80 != 0 {
		return q, 0, errDrop
	}
	q.id, q.udpSize = binary.BigEndian.Uint16(b), minUDP
	q.rd = b[2]&1 != 0
	if b[2]>>3&15 != dns.OpcodeQuery {
		return q, notImp, nil
	}
	if binary.BigEndian.Uint16(b[4:]) != 1 {
		return q, formErr, nil
	}
	var m dns.Msg
	if err := m.Unpack(b); err != nil || len(m.Question) != 1 {
		return q, formErr, nil
	}
	q.name, q.kind, q.class = m.Question[0].Name, Type(m.Question[0].Qtype), m.Question[0].Qclass
	if o := m.IsEdns0(); o != nil {
		q.edns = true
		q.udpSize = max(minUDP, min(int(o.UDPSize()), ednsSize))
	}
	return q, success, nil
}

// reply is an answer to a client.
type reply struct {
	code  code
	addrs []netip.Addr
	ttl   uint32
	// blocked is the text of an extended error "Blocked" (RFC 8914 §4.16).
	blocked string
}

// packReply writes an answer of at most limit bytes; what is larger is sent
// empty and truncated, so that the client asks again over TCP.
func packReply(q question, r reply, limit int) []byte {
	m := new(dns.Msg)
	m.Id, m.Response, m.RecursionDesired, m.RecursionAvailable = q.id, true, q.rd, true
	m.Rcode = int(r.code)
	m.Compress = true
	if q.name != "" {
		m.Question = []dns.Question{{Name: q.name, Qtype: uint16(q.kind), Qclass: q.class}}
	}
	for _, a := range r.addrs {
		h := dns.RR_Header{Name: q.name, Class: dns.ClassINET, Ttl: r.ttl, Rrtype: uint16(q.kind)}
		if q.kind == A {
			m.Answer = append(m.Answer, &dns.A{Hdr: h, A: a.AsSlice()})
		} else {
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: h, AAAA: a.AsSlice()})
		}
	}
	if q.edns {
		m.SetEdns0(ednsSize, false)
		if r.blocked != "" {
			o := m.IsEdns0()
			o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeBlocked, ExtraText: r.blocked})
		}
	}
	b, err := m.Pack()
	if err == nil && len(b) <= limit {
		return b
	}
	m.Answer, m.Truncated = nil, true
	if b, err = m.Pack(); err != nil || len(b) > limit {
		return nil
	}
	return b
}

// packQuery writes the guard's own query: lower case, one question, EDNS
// without options, nothing of the client's.
func packQuery(id uint16, name string, t Type) ([]byte, error) {
	m := new(dns.Msg)
	m.Id, m.RecursionDesired = id, true
	m.Question = []dns.Question{{Name: name + ".", Qtype: uint16(t), Qclass: dns.ClassINET}}
	m.SetEdns0(ednsSize, false)
	return m.Pack()
}

// result is what an upstream says.
type result struct {
	code      code
	addrs     []netip.Addr
	ttl       uint32
	truncated bool
}

var errOther = errors.New("not the answer to this query")

// parseResult reads an upstream's answer. errOther means that it belongs to
// another question (or to nobody) and that the right one may still come.
func parseResult(b []byte, id uint16, name string, t Type) (result, error) {
	if len(b) < 12 || binary.BigEndian.Uint16(b) != id || b[2]&0x80 == 0 {
		return result{}, errOther
	}
	var m dns.Msg
	err := m.Unpack(b)
	if len(m.Question) != 1 {
		return result{}, errOther
	}
	q := m.Question[0]
	if !strings.EqualFold(q.Name, name+".") || q.Qtype != uint16(t) || q.Qclass != dns.ClassINET {
		return result{}, errOther
	}
	if m.Truncated {
		return result{truncated: true}, nil
	}
	if err != nil {
		return result{}, err
	}
	r := result{code: code(m.Rcode)}
	r.addrs, r.ttl = flatten(m.Answer, name+".", t)
	return r, nil
}

// Bounds of one answer.
const (
	maxChain = 16 // CNAMEs
	maxAddrs = 64
)

// flatten follows the CNAME chain from name inside one answer and returns the
// addresses at its end, with the smallest TTL on the way. Records that the
// chain doesn't reach are nobody's.
func flatten(rrs []dns.RR, name string, t Type) ([]netip.Addr, uint32) {
	owner := dns.CanonicalName(name)
	ttl := ^uint32(0)
	for range maxChain {
		var addrs []netip.Addr
		next := ""
		for _, rr := range rrs {
			h := rr.Header()
			if h.Class != dns.ClassINET || dns.CanonicalName(h.Name) != owner {
				continue
			}
			var a netip.Addr
			switch v := rr.(type) {
			case *dns.CNAME:
				if next == "" {
					next, ttl = dns.CanonicalName(v.Target), min(ttl, h.Ttl)
				}
				continue
			case *dns.A:
				if t != A {
					continue
				}
				a, _ = netip.AddrFromSlice(v.A.To4())
			case *dns.AAAA:
				if t != AAAA {
					continue
				}
				a, _ = netip.AddrFromSlice(v.AAAA.To16())
			}
			if a.IsValid() && len(addrs) < maxAddrs {
				addrs = append(addrs, a)
				ttl = min(ttl, h.Ttl)
			}
		}
		if len(addrs) > 0 || next == "" {
			return addrs, ttl
		}
		owner = next
	}
	return nil, 0
}
