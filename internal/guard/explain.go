package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/proxy"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// explain returns the decision about a connection if it were made now. It changes
// nothing, neither pins nor budgets, and looks up allowed names only. Events of what
// the host tries next are marked.
func (g *Guard) explain(ctx context.Context, r control.Request) (any, error) {
	g.mu.Lock()
	_, known := g.live.find(r.Room)
	g.mu.Unlock()
	switch {
	case !known:
		return nil, fmt.Errorf("there is no room %q", clip.Bytes(r.Room, maxText))
	case r.Port == 0:
		return nil, errors.New("the port is missing")
	}
	if room := g.rooms[r.Room]; room != nil && r.From.IsValid() {
		room.tried.add(r.From)
	}
	p := g.store.Room(r.Room)
	if a, err := netip.ParseAddr(r.Host); err == nil {
		to := netip.AddrPortFrom(a.WithZone("").Unmap(), r.Port)
		out, d := g.explainAddr(p, to)
		if !r.NoLookUp {
			g.tryProxy(ctx, &out, egress.Want{Matcher: p.Matcher, Decision: d, Addrs: []netip.Addr{to.Addr()}, Port: r.Port})
		}
		return out, nil
	}
	n, err := firewall.ParseName(r.Host)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a name nor an address: %w", clip.Bytes(r.Host, maxText), err)
	}
	wild, budgets := g.bounds(p)
	d := wild.Would(n, p.Matcher.Name(n, r.Port))
	out := explained(p, budgets.Admit(d), r.Port)
	if !d.Allowed || r.NoLookUp {
		return out, nil
	}
	addrs, err := g.addresses(ctx, n)
	if err != nil {
		out.ResolveError = err.Error()
	}
	var refused firewall.Decision
	var at netip.Addr // of refused; one that a line opens, if there is one
	for _, a := range addrs {
		c := budgets.Admit(g.dialer.Check(p.Matcher, d, a, r.Port))
		out.Addresses = append(out.Addresses, control.ExplainedAddress{Address: a.String(), Allowed: c.Allowed, Reason: c.Reason})
		switch {
		case c.Allowed && !out.Allowed: // by a range, whose budget isn't used up
			out.Allowed, out.Reason = true, d.Reason
		case !c.Allowed && (!at.IsValid() || refused.Suggest == ""):
			refused, at = c, a
		}
	}
	if out.Allowed && at.IsValid() && !slices.ContainsFunc(out.Addresses, func(a control.ExplainedAddress) bool { return a.Allowed }) {
		refuse(&out, refused, at)
	}
	g.tryProxy(ctx, &out, egress.Want{Matcher: p.Matcher, Decision: d, Addrs: addrs, Port: r.Port, Admit: budgets.Admit})
	return out, nil
}

// proxyTime bounds how long the upstream proxy is tried.
const proxyTime = 3 * time.Second

// tryProxy tries whether the upstream proxy connects to an allowed destination. What
// else fails, what is tried from the worker shows.
func (g *Guard) tryProxy(ctx context.Context, out *control.Explanation, to egress.Want) {
	if g.dialer.Proxy == nil || !out.Allowed || out.Carrier == "none" || len(to.Addrs) == 0 {
		return
	}
	out.Proxy = g.dialer.Proxy.String()
	ctx, cancel := context.WithTimeout(ctx, proxyTime)
	defer cancel()
	c, err := g.dialer.Dial(ctx, to)
	if failed := new(egress.ProxyError); errors.As(err, &failed) {
		out.ProxyError = failed.Error()
	}
	if err == nil {
		c.Close()
	}
}

// bounds returns the usage of a room's wildcards and budgets, which is empty for a
// room without a network.
func (g *Guard) bounds(p *policy.Room) (*dns.Wildcards, *proxy.Budgets) {
	if r := g.rooms[p.Room]; r != nil {
		return &r.wild, &r.budget
	}
	return &dns.Wildcards{}, &proxy.Budgets{}
}

// explainAddr is explain for a dialled address: on ports other than 80 and 443 the
// names it is pinned for count.
func (g *Guard) explainAddr(p *policy.Room, to netip.AddrPort) (control.Explanation, firewall.Decision) {
	var pins *dns.Pins
	if r := g.rooms[p.Room]; r != nil {
		pins = &r.pins
	} else {
		pins = &dns.Pins{}
	}
	d, _ := (&proxy.Room{Pins: pins}).DecideAddr(p, to)
	out := explained(p, d, to.Port())
	_, budgets := g.bounds(p)
	c := budgets.Admit(g.dialer.Check(p.Matcher, d, to.Addr(), to.Port()))
	if !c.Allowed && (d.Allowed || c.Suggest == "") && p.Mode != firewall.None {
		refuse(&out, c, to.Addr())
	}
	if to.Addr().IsLoopback() {
		out.Carrier = "none" // the room's own: it never reaches the guard
	}
	out.Addresses = []control.ExplainedAddress{{Address: to.Addr().String(), Allowed: c.Allowed, Reason: c.Reason}}
	return out, d
}

// refuse sets the decision to that about an address.
func refuse(out *control.Explanation, d firewall.Decision, a netip.Addr) {
	out.Allowed, out.Reason, out.Suggest, out.Address = false, d.Reason, d.Suggest, a.String()
	if d.Rule != nil {
		out.Rule, out.Line = target(*d.Rule), d.Rule.Line
	}
}

func explained(p *policy.Room, d firewall.Decision, port uint16) control.Explanation {
	out := control.Explanation{Allowed: d.Allowed, Reason: d.Reason, Suggest: d.Suggest, Carrier: carrier(p, port)}
	if d.Rule != nil {
		out.Rule, out.Line = target(*d.Rule), d.Rule.Line
	}
	return out
}

// carrier names the handler that the room's rules redirect a port to.
func carrier(p *policy.Room, port uint16) string {
	switch {
	case p.Mode == firewall.None || port == 53:
		return "none"
	case port == 80:
		return "http"
	case port == 443:
		return "tls"
	case p.Mode == firewall.Open, firewall.HasPort(firewall.RoomPorts(p.RoomPolicy), port):
		return "tcp"
	}
	return "none"
}

// addresses looks up an allowed name.
func (g *Guard) addresses(ctx context.Context, n firewall.Name) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, egress.Timeout)
	defer cancel()
	types := []dns.Type{dns.A}
	if g.dialer.Local.IPv6() {
		types = append(types, dns.AAAA)
	}
	var out []netip.Addr
	var errs []error
	for _, t := range types {
		a, err := g.resolver.Lookup(ctx, nil, n, t)
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, a.Addrs...)
	}
	switch {
	case len(out) > 0:
		return slices.Clip(out), nil
	case len(errs) > 0:
		return nil, errs[0]
	}
	return nil, errors.New(control.NoAddress)
}
