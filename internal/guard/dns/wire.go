package dns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// This file is the only one that uses the DNS library. It was chosen because it
// parses only the records that are requested: input of a room or an upstream meets
// a small parser.

// Type is the type of a question.
type Type uint16

// The types that are looked up. All others are answered with NODATA.
const (
	A    = Type(dnsmessage.TypeA)
	AAAA = Type(dnsmessage.TypeAAAA)
)

// question is a client's question.
type question struct {
	id      uint16
	name    string          // as text, with the final dot; empty if there is none
	asked   dnsmessage.Name // as it came
	kind    Type
	class   dnsmessage.Class
	rd      bool
	edns    bool
	udpSize int
}

// code is a response code (RFC 1035 §4.1.1, RFC 8914 for the text).
type code = dnsmessage.RCode

const (
	success   = dnsmessage.RCodeSuccess
	formErr   = dnsmessage.RCodeFormatError
	servFail  = dnsmessage.RCodeServerFailure
	nxDomain  = dnsmessage.RCodeNameError
	notImp    = dnsmessage.RCodeNotImplemented
	refused   = dnsmessage.RCodeRefused
	classINET = dnsmessage.ClassINET
)

// ednsSize is the UDP payload size that the guard offers and sends at most
// (RFC 9715).
const ednsSize = 1232

// minUDP is the UDP payload size that every client accepts (RFC 1035 §4.2.1).
const minUDP = 512

// questionCount is QDCOUNT (RFC 1035 §4.1.1).
func questionCount(b []byte) uint16 { return binary.BigEndian.Uint16(b[4:]) }

var errDrop = errors.New("not a query")

// parseQuery parses a query. errDrop means that it gets no answer; a code other
// than success is the answer.
func parseQuery(b []byte) (q question, c code, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil || h.Response {
		return q, 0, errDrop
	}
	q.id, q.rd, q.udpSize = h.ID, h.RecursionDesired, minUDP
	if h.OpCode != 0 {
		return q, notImp, nil
	}
	if questionCount(b) != 1 {
		return q, formErr, nil
	}
	asked, err := p.Question()
	if err != nil {
		return q, formErr, nil
	}
	if err := errors.Join(p.SkipAllQuestions(), p.SkipAllAnswers(), p.SkipAllAuthorities()); err != nil {
		return q, formErr, nil
	}
	opt, err := readOPT(&p)
	if err != nil {
		return q, formErr, nil
	}
	q.asked, q.name, q.kind, q.class = asked.Name, presentation(asked.Name), Type(asked.Type), asked.Class
	if opt != nil {
		q.edns = true
		q.udpSize = max(minUDP, min(int(opt.Class), ednsSize)) // RFC 6891 §6.1.2
	}
	return q, success, nil
}

// readOPT parses the additional section and returns the header of its OPT record,
// nil if there is none.
func readOPT(p *dnsmessage.Parser) (*dnsmessage.ResourceHeader, error) {
	var opt *dnsmessage.ResourceHeader
	for {
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return opt, nil
		}
		if err == nil {
			err = p.SkipAdditional()
		}
		if err != nil {
			return nil, err
		}
		if h.Type == dnsmessage.TypeOPT {
			opt = &h
		}
	}
}

// presentation returns a name in the form of RFC 1035 §5.1, with non-plain
// characters as \DDD. The library keeps the raw bytes.
func presentation(n dnsmessage.Name) string {
	raw := n.Data[:n.Length]
	var b strings.Builder
	b.Grow(len(raw))
	for _, c := range raw {
		if c <= ' ' || c >= 0x7f || c == '\\' || c == '"' {
			fmt.Fprintf(&b, `\%03d`, c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// reply is an answer to a client.
type reply struct {
	code  code
	addrs []netip.Addr
	ttl   uint32
	// blocked is the text of an extended error "Blocked" (RFC 8914 §4.16).
	blocked string
}

// packReply encodes an answer of at most limit bytes. A larger one is sent empty
// and truncated, so that the client retries over TCP.
func packReply(q question, r reply, limit int) []byte {
	b, err := packAnswer(q, r, false)
	if err == nil && len(b) <= limit {
		return b
	}
	r.addrs = nil
	if b, err = packAnswer(q, r, true); err != nil || len(b) > limit {
		return nil
	}
	return b
}

func packAnswer(q question, r reply, truncated bool) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, 0, minUDP), dnsmessage.Header{
		ID: q.id, Response: true, RecursionDesired: q.rd, RecursionAvailable: true, Truncated: truncated, RCode: r.code,
	})
	b.EnableCompression()
	err := b.StartQuestions()
	if err == nil && q.name != "" {
		err = b.Question(dnsmessage.Question{Name: q.asked, Type: dnsmessage.Type(q.kind), Class: q.class})
	}
	if err == nil {
		err = b.StartAnswers()
	}
	for _, a := range r.addrs {
		if err != nil {
			break
		}
		h := dnsmessage.ResourceHeader{Name: q.asked, Class: classINET, TTL: r.ttl}
		if q.kind == A {
			err = b.AResource(h, dnsmessage.AResource{A: a.As4()})
		} else {
			err = b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	if err == nil && q.edns {
		err = addOPT(&b, r.blocked)
	}
	if err != nil {
		return nil, err
	}
	return b.Finish()
}

// The option and its code "Blocked" of RFC 8914 §2 and §4.16.
const (
	optionEDE  = 15
	edeBlocked = 15
)

func addOPT(b *dnsmessage.Builder, blocked string) error {
	var h dnsmessage.ResourceHeader
	if err := h.SetEDNS0(ednsSize, success, false); err != nil {
		return err
	}
	var o dnsmessage.OPTResource
	if blocked != "" {
		o.Options = []dnsmessage.Option{{Code: optionEDE, Data: append([]byte{0, edeBlocked}, blocked...)}}
	}
	if err := b.StartAdditionals(); err != nil {
		return err
	}
	return b.OPTResource(h, o)
}

// packQuery encodes the guard's own query: lower case, one question, EDNS without
// options, nothing from the client.
func packQuery(id uint16, name string, t Type) ([]byte, error) {
	n, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	b := dnsmessage.NewBuilder(make([]byte, 0, minUDP), dnsmessage.Header{ID: id, RecursionDesired: true})
	if err = b.StartQuestions(); err == nil {
		err = b.Question(dnsmessage.Question{Name: n, Type: dnsmessage.Type(t), Class: classINET})
	}
	if err == nil {
		err = addOPT(&b, "")
	}
	if err != nil {
		return nil, err
	}
	return b.Finish()
}
