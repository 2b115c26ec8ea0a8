//go:build linux

package probe

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// dnsAsk sends one question to one server, whatever /etc/resolv.conf says.
func dnsAsk(a args) (string, string) {
	server := a.pos[0]
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(strings.Trim(server, "[]"), "53")
	}
	qtype, ok := dns.StringToType[strings.ToUpper(a.at(2, "A"))]
	if !ok {
		return "ERROR", "no such type: " + a.at(2, "A")
	}
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(a.pos[1]), qtype)
	q.SetEdns0(1232, false)
	c := &dns.Client{Net: a.opt("net", "udp"), Timeout: a.limit}
	r, _, err := c.Exchange(q, server)
	if err != nil {
		return seenOf(err)
	}
	detail := extended(r)
	if r.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[r.Rcode], detail
	}
	var found []string
	for _, rr := range r.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			found = append(found, rr.A.String())
		case *dns.AAAA:
			found = append(found, rr.AAAA.String())
		default:
			detail = strings.TrimSpace(detail + " " + rr.String())
		}
	}
	if len(found) == 0 {
		return "NODATA", detail
	}
	slices.Sort(found)
	return strings.Join(found, ","), detail
}

// extended returns the text of an extended DNS error (RFC 8914), if there is one.
func extended(r *dns.Msg) string {
	opt := r.IsEdns0()
	if opt == nil {
		return ""
	}
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok {
			return strings.TrimSpace(dns.ExtendedErrorCodeToString[e.InfoCode] + ": " + e.ExtraText)
		}
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
