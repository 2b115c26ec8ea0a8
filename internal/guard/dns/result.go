package dns

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// result is an upstream's answer.
type result struct {
	code      code
	addrs     []netip.Addr
	ttl       uint32
	truncated bool
}

var errOther = errors.New("not the answer to this query")

// parseResult parses an upstream's answer. errOther means that it belongs to
// another question, or to none, and that the right one may still arrive.
func parseResult(b []byte, id uint16, name string, t Type) (result, error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil || h.ID != id || !h.Response || questionCount(b) != 1 {
		return result{}, errOther
	}
	owner := name + "."
	q, err := p.Question()
	if err != nil || lower(q.Name) != owner || Type(q.Type) != t || q.Class != classINET {
		return result{}, errOther
	}
	if h.Truncated {
		return result{truncated: true}, nil
	}
	if err := p.SkipAllQuestions(); err != nil {
		return result{}, err
	}
	records, err := readRecords(&p, t)
	if err != nil {
		return result{}, err
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return result{}, err
	}
	opt, err := readOPT(&p)
	if err != nil {
		return result{}, err
	}
	r := result{code: h.RCode}
	if opt != nil {
		r.code = opt.ExtendedRCode(h.RCode)
	}
	r.addrs, r.ttl = flatten(records, owner)
	return r, nil
}

// record is a relevant record: an alias, or an address of the requested type.
type record struct {
	owner string // in lower case, with the final dot
	ttl   uint32
	alias string     // of a CNAME, like owner
	addr  netip.Addr // of any other record
}

// lower returns a name in lower case. Presentation yields only ASCII.
func lower(n dnsmessage.Name) string { return strings.ToLower(presentation(n)) }

var errLength = errors.New("an address of the wrong length")

// readRecords reads the answer section.
func readRecords(p *dnsmessage.Parser, t Type) (out []record, err error) {
	for {
		h, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		r := record{ttl: h.TTL}
		switch {
		case h.Class == classINET && h.Type == dnsmessage.TypeCNAME:
			var c dnsmessage.CNAMEResource
			c, err = p.CNAMEResource()
			r.alias = lower(c.CNAME)
		case h.Class == classINET && h.Type == dnsmessage.TypeA && t == A:
			var a dnsmessage.AResource
			if h.Length != 4 {
				return nil, errLength
			}
			a, err = p.AResource()
			r.addr = netip.AddrFrom4(a.A)
		case h.Class == classINET && h.Type == dnsmessage.TypeAAAA && t == AAAA:
			var a dnsmessage.AAAAResource
			if h.Length != 16 {
				return nil, errLength
			}
			a, err = p.AAAAResource()
			r.addr = netip.AddrFrom16(a.AAAA)
		default:
			if err := p.SkipAnswer(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		r.owner = lower(h.Name)
		out = append(out, r)
	}
}

// Bounds of one answer.
const (
	maxChain = 16 // CNAMEs
	maxAddrs = 64
)

// flatten follows the CNAME chain from owner inside one answer and returns the
// addresses at its end, with the smallest TTL of the chain. It ignores records that
// the chain doesn't reach.
func flatten(records []record, owner string) ([]netip.Addr, uint32) {
	ttl := ^uint32(0)
	for range maxChain {
		var addrs []netip.Addr
		next := ""
		for _, r := range records {
			switch {
			case r.owner != owner:
			case r.alias != "":
				if next == "" {
					next, ttl = r.alias, min(ttl, r.ttl)
				}
			case len(addrs) < maxAddrs:
				addrs = append(addrs, r.addr)
				ttl = min(ttl, r.ttl)
			}
		}
		if len(addrs) > 0 || next == "" {
			return addrs, ttl
		}
		owner = next
	}
	return nil, 0
}
