package proxy

import (
	"context"
	"net"
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TCP carries a connection to a port other than 80 and 443: the address that
// the worker dialled must be pinned for a name that the policy allows there, or
// lie in an allowed range (B25).
func (r *Room) TCP(ctx context.Context, c *net.TCPConn) {
	orig, err := OriginalDst(c)
	if err != nil {
		Reset(c)
		return
	}
	r.byAddress(ctx, events.TCP, c, orig, nil, nil)
}

// byAddress carries a connection to the address that the worker dialled; head
// is what was read of it already, large its place, nil for none.
func (r *Room) byAddress(ctx context.Context, kind events.Kind, c *net.TCPConn, orig netip.AddrPort, head []byte, large *place) {
	p := r.Policy()
	d, name := r.addrDecision(p, orig, kind == events.TCP)
	if !d.Allowed {
		r.deny(kind, d, name, orig)
		Reset(c)
		return
	}
	out, err := r.dialAddr(ctx, kind, p, d, orig, name)
	if err != nil {
		Reset(c)
		return
	}
	if len(head) > 0 {
		if _, err := out.Write(head); err != nil {
			Reset(out)
			Reset(c)
			return
		}
	}
	if large != nil {
		large.free()
	}
	r.splice(c, out, func(p *policy.Room) bool {
		d, _ := r.addrDecision(p, orig, kind == events.TCP)
		return d.Allowed
	})
}

// addrDecision decides about an address: by the names that it is pinned for
// (pinned true), else by range. It returns a name of the address, if one is
// known, for events.
func (r *Room) addrDecision(p *policy.Room, to netip.AddrPort, pinned bool) (firewall.Decision, string) {
	names := r.Pins.Names(to.Addr())
	first := ""
	var deny firewall.Decision
	for _, n := range names {
		if s := n.String(); first == "" || s < first {
			first = s
		}
		d := p.Matcher.Name(n, to.Port())
		switch {
		case d.Allowed && pinned && d.Rule != nil:
			return d, n.String()
		case d.Reason == firewall.ReasonDenied:
			deny = d
		}
	}
	if deny.Reason != "" {
		return deny, first // a deny line wins over ranges and mode open
	}
	d := p.Matcher.Addr(to.Addr(), to.Port())
	if !d.Allowed && first != "" && d.Reason == firewall.ReasonName {
		// The reason and the line of a name say more than those of an address.
		if n, err := firewall.ParseName(first); err == nil {
			d = p.Matcher.Name(n, to.Port())
			d.Allowed = false
		}
	}
	return d, first
}
