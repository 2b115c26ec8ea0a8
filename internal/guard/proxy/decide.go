package proxy

import (
	"cmp"
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// route is the destination of a connection or a request, with the decision.
type route struct {
	firewall.Decision
	// to is dialled; a name is dialled at the addresses of the guard's own answer.
	to authority
	// name is a name of the dialled address, for events; "" for none.
	name string
	// again decides the same question by another policy.
	again func(*policy.Room) firewall.Decision
}

// route decides about a connection or request for a host. orig is the address that
// the client dialled, invalid for none: if a line or mode open allows it, the
// connection goes there, unless the host is denied.
func (r *Room) route(p *policy.Room, orig netip.AddrPort, host authority) route {
	d, name := r.decide(p, host)
	byRange := func(p *policy.Room, d firewall.Decision) (firewall.Decision, string, bool) {
		if !orig.Addr().IsValid() || d.Reason == firewall.ReasonDenied || d.Reason == firewall.ReasonEndpoint {
			return d, "", false
		}
		there, name := r.DecideAddr(p, orig)
		return there, name, there.Allowed
	}
	if d, name, ok := byRange(p, d); ok {
		return route{d, authority{addr: orig.Addr(), port: orig.Port()}, name, func(p *policy.Room) firewall.Decision {
			d, _ := r.decide(p, host)
			d, _, ok := byRange(p, d)
			d.Allowed = d.Allowed && ok
			return d
		}}
	}
	x := route{d, host, name, func(p *policy.Room) firewall.Decision { d, _ := r.decide(p, host); return d }}
	switch {
	case host.addr.IsValid():
		x.again = r.pinnedOnce(host, name)
	case x.Allowed && r.Admit != nil:
		x.Decision = r.Admit(host.name, x.Decision)
	}
	return x
}

// decide returns a policy's decision about a name or an address, and a name of
// the address.
func (r *Room) decide(p *policy.Room, host authority) (firewall.Decision, string) {
	if host.addr.IsValid() {
		return r.DecideAddr(p, netip.AddrPortFrom(host.addr, host.port))
	}
	return p.Matcher.Name(host.name, host.port), ""
}

// pinnedOnce returns a function that decides again about an address pinned for a
// name: the pin may have expired, but the name's line counts.
func (r *Room) pinnedOnce(to authority, name string) func(*policy.Room) firewall.Decision {
	n, err := firewall.ParseName(name)
	named := err == nil && to.port != 80 && to.port != 443
	return func(p *policy.Room) firewall.Decision {
		if named {
			if d := p.Matcher.Name(n, to.port); d.Allowed {
				return d
			}
		}
		d, _ := r.decide(p, to)
		return d
	}
}

// mustRead reports whether the host name of a connection to port 80 or 443 of an
// address must be read. If not, the address decides, and the server may speak
// first.
func (r *Room) mustRead(p *policy.Room, to netip.AddrPort) bool {
	d, _ := r.DecideAddr(p, to)
	return !d.Allowed || hasClosedNames(p, to.Port())
}

// hasClosedNames reports whether names are denied on a port or have an endpoint, so that
// the name must be known although the address is allowed.
func hasClosedNames(p *policy.Room, port uint16) bool {
	if p.Matcher.HasEndpoints() {
		return true
	}
	for i := range p.Deny {
		if !p.Deny[i].Host.IsZero() && firewall.HasPort(p.Deny[i].Ports, port) {
			return true
		}
	}
	return false
}

// DecideAddr decides about an address: on ports other than 80 and 443 by the names
// that it is pinned for (B25), else by range. It returns a name of the address for
// events, "" for none.
func (r *Room) DecideAddr(p *policy.Room, to netip.AddrPort) (firewall.Decision, string) {
	pinned := to.Port() != 80 && to.Port() != 443
	names := r.Pins.Names(to.Addr())
	last := "" // that was asked for
	if len(names) > 0 {
		last = names[0].String()
	}
	sortfunc.Stable(names, func(x, y firewall.Name) int { return cmp.Compare(x.String(), y.String()) })
	var deny, learned firewall.Decision
	var denyName, learnedName string
	for _, n := range names {
		d := p.Matcher.Name(n, to.Port())
		switch {
		case d.Allowed && pinned && d.Rule != nil:
			return d, n.String()
		case d.Allowed && pinned && d.Reason == firewall.ReasonLearned && !learned.Allowed:
			learned, learnedName = d, n.String()
		case d.Reason == firewall.ReasonDenied:
			deny, denyName = d, n.String()
		}
	}
	if deny.Reason != "" {
		return deny, denyName // a deny line wins over ranges, learning and mode open
	}
	d := p.Matcher.Addr(to.Addr(), to.Port())
	if !d.Allowed && d.Reason != firewall.ReasonDenied && learned.Allowed {
		return learned, learnedName
	}
	if !d.Allowed && last != "" && d.Reason == firewall.ReasonName {
		// The reason and the line of a name are more helpful than those of an address.
		if n, err := firewall.ParseName(last); err == nil {
			d = p.Matcher.Name(n, to.Port())
			d.Allowed = false
		}
	}
	return d, last
}
