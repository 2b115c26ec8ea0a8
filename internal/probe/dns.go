//go:build linux

package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsTypes are the types that can be asked for by name; others by number.
// https://www.iana.org/assignments/dns-parameters
var dnsTypes = map[string]dnsmessage.Type{
	"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "SVCB": 64, "HTTPS": 65, "ANY": 255,
}

var dnsCodes = map[dnsmessage.RCode]string{
	dnsmessage.RCodeFormatError: "FORMERR", dnsmessage.RCodeServerFailure: "SERVFAIL", dnsmessage.RCodeNameError: "NXDOMAIN",
	dnsmessage.RCodeNotImplemented: "NOTIMP", dnsmessage.RCodeRefused: "REFUSED",
}

// dnsAsk sends one question to one server, ignoring /etc/resolv.conf.
func dnsAsk(a args) (string, string) {
	server := a.pos[0]
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(strings.Trim(server, "[]"), "53")
	}
	qtype, ok := dnsTypes[strings.ToUpper(a.at(2, "A"))]
	if n, err := strconv.ParseUint(a.at(2, ""), 10, 16); err == nil {
		qtype, ok = dnsmessage.Type(n), true
	}
	if !ok {
		return "ERROR", "no such type: " + a.at(2, "A")
	}
	name, err := dnsmessage.NewName(strings.TrimSuffix(a.pos[1], ".") + ".")
	if err != nil {
		return "ERROR", err.Error()
	}
	query, err := dnsQuery(name, qtype)
	if err != nil {
		return "ERROR", err.Error()
	}
	b, err := a.exchange(server, query)
	if err != nil {
		return seenOf(err)
	}
	seen, detail, err := dnsAnswer(b)
	if err != nil {
		return seenOf(err)
	}
	return seen, detail
}

// dnsQuery is a question with EDNS. dnsmessage.Message would make it too, and
// link what reads and prints every type of record: 80 kB.
func dnsQuery(name dnsmessage.Name, qtype dnsmessage.Type) ([]byte, error) {
	var edns dnsmessage.ResourceHeader
	if err := edns.SetEDNS0(1232, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: uint16(time.Now().UnixNano()), RecursionDesired: true})
	if err := errors.Join(
		b.StartQuestions(),
		b.Question(dnsmessage.Question{Name: name, Type: qtype, Class: dnsmessage.ClassINET}),
		b.StartAdditionals(),
		b.OPTResource(edns, dnsmessage.OPTResource{}),
	); err != nil {
		return nil, err
	}
	return b.Finish()
}

// exchange sends a query and waits for the answer with its ID.
func (a args) exchange(server string, query []byte) ([]byte, error) {
	network := a.opt("net", "udp")
	c, err := a.dialer().Dial(network, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	if network == "tcp" {
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	}
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	if network == "tcp" {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return nil, err
		}
		answer := make([]byte, binary.BigEndian.Uint16(size[:]))
		_, err := io.ReadFull(c, answer)
		return answer, err
	}
	answer := make([]byte, 64<<10)
	for {
		n, err := c.Read(answer)
		if err != nil {
			return nil, err
		}
		if n < 2 {
			return nil, errors.New("an answer of less than two bytes")
		}
		if answer[0] == query[0] && answer[1] == query[1] {
			return answer[:n], nil
		}
	}
}

func dnsAnswer(b []byte) (seen, detail string, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err == nil {
		err = p.SkipAllQuestions()
	}
	if err != nil {
		return "", "", err
	}
	found, detail, err := dnsAddresses(&p)
	if err == nil {
		err = p.SkipAllAuthorities()
	}
	code := h.RCode
	for err == nil {
		var rr dnsmessage.ResourceHeader
		if rr, err = p.AdditionalHeader(); err != nil {
			break
		}
		if rr.Type != dnsmessage.TypeOPT {
			err = p.SkipAdditional()
			continue
		}
		var opt dnsmessage.OPTResource
		opt, err = p.OPTResource()
		code, detail = rr.ExtendedRCode(code), extended(opt)
	}
	switch {
	case err != dnsmessage.ErrSectionDone:
		return "", "", err
	case code != dnsmessage.RCodeSuccess:
		if name, ok := dnsCodes[code]; ok {
			return name, detail, nil
		}
		return fmt.Sprintf("RCODE%d", code), detail, nil
	case len(found) == 0:
		return "NODATA", detail, nil
	}
	slices.Sort(found)
	return strings.Join(found, ","), detail, nil
}

// dnsAddresses returns the addresses in the answers; the detail has the other records.
func dnsAddresses(p *dnsmessage.Parser) (found []string, detail string, err error) {
	for {
		h, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			return found, strings.TrimSpace(detail), nil
		}
		switch {
		case err != nil:
		case h.Type == dnsmessage.TypeA:
			var body dnsmessage.AResource
			body, err = p.AResource()
			found = append(found, netip.AddrFrom4(body.A).String())
		case h.Type == dnsmessage.TypeAAAA:
			var body dnsmessage.AAAAResource
			body, err = p.AAAAResource()
			found = append(found, netip.AddrFrom16(body.AAAA).String())
		default:
			err = p.SkipAnswer()
			detail += fmt.Sprintf(" %v of %d bytes", h.Type, h.Length)
		}
		if err != nil {
			return nil, "", err
		}
	}
}

// extended returns the text of an extended DNS error (RFC 8914), if there is one.
func extended(opt dnsmessage.OPTResource) string {
	for _, o := range opt.Options {
		if o.Code != 15 || len(o.Data) < 2 {
			continue
		}
		code := binary.BigEndian.Uint16(o.Data)
		if code == 15 {
			return strings.TrimSpace("Blocked: " + string(o.Data[2:]))
		}
		return strings.TrimSpace(fmt.Sprintf("extended error %d: %s", code, o.Data[2:]))
	}
	return ""
}

// lookup resolves as programs do: /etc/hosts, then the servers of
// /etc/resolv.conf.
func lookup(a args) (string, string) {
	ctx, cancel := context.WithTimeout(context.Background(), a.limit)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	slices.Sort(found)
	return strings.Join(found, ","), ""
}
