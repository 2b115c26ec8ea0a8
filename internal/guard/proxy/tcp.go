package proxy

import (
	"context"
	"net"
	"net/netip"
	"sort"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TCP carries a connection to a port other than 80 and 443: the address that
// the worker dialled must be pinned for a name that the policy allows there, or
// lie in an allowed range (B25).
func (r *Room) TCP(ctx context.Context, c *net.TCPConn) {
	orig, err := r.original(c)
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
	still := func(p *policy.Room) firewall.Decision {
		// The name may not be pinned any more: the line is what counts.
		if n, err := firewall.ParseName(name); err == nil && kind == events.TCP {
			if d := p.Matcher.Name(n, orig.Port()); d.Allowed {
				return d
			}
		}
		d, _ := r.addrDecision(p, orig, kind == events.TCP)
		return d
	}
	w, err := r.open(ctx, asked{kind, c, name, still}, p, d, []netip.Addr{orig.Addr()}, orig.Port())
	if err != nil {
		Reset(c)
		return
	}
	r.start(c, w, head, large)
}

// start sends what was read of a connection already, gives back its place, and
// splices.
func (r *Room) start(c *net.TCPConn, w *way, head []byte, large *place) {
	r.spliceAfter(c, w, func() (err error) {
		if len(head) > 0 {
			_, err = w.Write(head)
		}
		if large != nil {
			large.free()
		}
		return err
	})
}

// addrDecision decides about an address: by the names that it is pinned for
// (pinned true), else by range. It returns a name of the address, if one is
// known, for events.
func (r *Room) addrDecision(p *policy.Room, to netip.AddrPort, pinned bool) (firewall.Decision, string) {
	names := r.Pins.Names(to.Addr())
	sort.Slice(names, func(i, j int) bool { return names[i].String() < names[j].String() })
	first := ""
	var deny, learned firewall.Decision
	var learnedName string
	for _, n := range names {
		if first == "" {
			first = n.String()
		}
		d := p.Matcher.Name(n, to.Port())
		switch {
		case d.Allowed && pinned && d.Rule != nil:
			return d, n.String()
		case d.Allowed && pinned && d.Reason == firewall.ReasonLearned && !learned.Allowed:
			learned, learnedName = d, n.String()
		case d.Reason == firewall.ReasonDenied:
			deny = d
		}
	}
	if deny.Reason != "" {
		return deny, first // a deny line wins over ranges, learning and mode open
	}
	d := p.Matcher.Addr(to.Addr(), to.Port())
	if !d.Allowed && d.Reason != firewall.ReasonDenied && learned.Allowed {
		return learned, learnedName
	}
	if !d.Allowed && first != "" && d.Reason == firewall.ReasonName {
		// The reason and the line of a name say more than those of an address.
		if n, err := firewall.ParseName(first); err == nil {
			d = p.Matcher.Name(n, to.Port())
			d.Allowed = false
		}
	}
	return d, first
}
