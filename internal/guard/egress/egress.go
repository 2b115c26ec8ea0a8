// Package egress has the guard's two diallers. [Upstream] dials the resolvers
// and the upstream proxy; [Dialer] dials what workers request, and checks the
// never-list on the address itself, immediately before connect (B26, B31).
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// Timeout bounds one dial with all its addresses.
const Timeout = 10 * time.Second

// stagger is the head start of an address over the next (RFC 8305 §5).
const stagger = 250 * time.Millisecond

// MaxTries bounds how many addresses of a name are tried, and so the sockets of
// one dial.
const MaxTries = 6

// Dialer dials what workers request.
type Dialer struct {
	Local    *Local
	Upstream *Upstream
	// Proxy is the upstream HTTP proxy; nil: dial directly.
	Proxy *Proxy
}

// NeverError is the refusal of an address by the never-list or a deny line.
type NeverError struct {
	Addr     netip.Addr
	Decision firewall.Decision
}

// Error names the address and the reason.
func (e *NeverError) Error() string {
	return fmt.Sprintf("%s is closed: %s", e.Addr, e.Decision.Reason)
}

// Check decides about one address. d is the decision about the name or address that
// led to it; the never-list applies in any case. The reason of a refusal is the
// one that stays, whatever lines there are: a private address of the guard itself is
// its own, which no line opens.
func (x *Dialer) Check(m *firewall.Matcher, d firewall.Decision, a netip.Addr, port uint16) firewall.Decision {
	a = a.Unmap()
	out := m.Dial(d, a, port)
	if !out.Allowed && out.Suggest == "" {
		return out
	}
	if x.Upstream.Has(a) {
		return firewall.Decision{Reason: events.ReasonUpstream}
	}
	place, err := x.Local.Place(a)
	if err != nil {
		return firewall.Decision{Reason: events.ReasonLocalUnsure}
	}
	byRange := func() bool { r := m.Addr(a, port); return r.Allowed && r.Rule != nil }
	switch place {
	case Own:
		return firewall.Decision{Reason: events.ReasonOwn}
	case Gateway:
		if !byRange() {
			return firewall.Decision{Reason: events.ReasonGateway, Suggest: cidrLine(a, port)}
		}
	case OnLink:
		if out.Allowed && !firewall.Private.OpenedBy(out.Rule) && !byRange() {
			return firewall.Decision{Reason: events.ReasonOnLink, Suggest: cidrLine(a, port)}
		}
	}
	return out
}

// Refused returns the refusal d of an address for the log: it suggests nothing where
// no line opens the address, and has the reason of [Dialer.Check] if a worker, who
// knows d, is told nothing new by that.
func (x *Dialer) Refused(m *firewall.Matcher, d firewall.Decision, a netip.Addr, port uint16) firewall.Decision {
	c := x.Check(m, d, a, port)
	switch {
	case firewall.ToldReason(c.Reason) == firewall.ToldReason(d.Reason):
		return c
	case c.Suggest == "":
		d.Suggest = ""
	}
	return d
}

// Answer decides whether a DNS answer for a name may contain an address: an address
// that can't be dialled on any port of the name is left out.
func (x *Dialer) Answer(m *firewall.Matcher, n firewall.Name, a netip.Addr) firewall.Decision {
	a = a.Unmap()
	class := firewall.Classify(a)
	reason := class.String()
	if !class.Openable() {
		return firewall.Decision{Reason: reason}
	}
	switch place, err := x.Local.Place(a); {
	case x.Upstream.Has(a):
		return firewall.Decision{Reason: events.ReasonUpstream}
	case err != nil:
		return firewall.Decision{Reason: events.ReasonLocalUnsure}
	case place == Own:
		return firewall.Decision{Reason: events.ReasonOwn}
	case place == Gateway:
		class, reason = firewall.Benchmark, events.ReasonGateway // opened by a range alone
	case place == OnLink && class == firewall.Public:
		class, reason = firewall.Private, events.ReasonOnLink
	}
	if m.Opens(n, a, class) {
		return firewall.Decision{Allowed: true, Reason: firewall.ReasonAllowed}
	}
	out := firewall.Decision{Reason: reason}
	if class == firewall.Private || class == firewall.Shared {
		out.Suggest = "{host: " + n.String() + ", private: true}"
	}
	return out
}

func cidrLine(a netip.Addr, port uint16) string {
	return fmt.Sprintf("{cidr: %s, port: %d}", netip.PrefixFrom(a, a.BitLen()), port)
}

// Want is one dial.
type Want struct {
	Matcher *firewall.Matcher
	// Decision allowed the name or the address.
	Decision firewall.Decision
	Addrs    []netip.Addr
	Port     uint16
	// Admit, if not nil, may override the decision about an address.
	Admit func(firewall.Decision) firewall.Decision
}

// Dialled is a connection.
type Dialled struct {
	*net.TCPConn
	// Addr is the dialled address, also if the connection is through an upstream proxy.
	Addr netip.Addr
	// Decision allowed the address: that of the name, or that of a range that
	// contains the address.
	Decision firewall.Decision
	// Revoked reports whether the upstream proxy's credential, by which the connection was
	// made, was revoked since; nil: it has none.
	Revoked func() bool
}

// check decides about one address of a Want.
func (x *Dialer) check(w *Want, a netip.Addr) (firewall.Decision, error) {
	d := x.Check(w.Matcher, w.Decision, a, w.Port)
	if d.Allowed && w.Admit != nil {
		d = w.Admit(d)
	}
	if !d.Allowed {
		return d, &NeverError{Addr: a, Decision: d}
	}
	return d, nil
}

// Dial connects to the first address that answers, IPv6 and IPv4 in turn. The
// error is a *NeverError if every address was refused before it was dialled.
func (x *Dialer) Dial(ctx context.Context, w Want) (Dialled, error) {
	never := errors.New("the name has no address")
	try := make([]netip.Addr, 0, min(len(w.Addrs), MaxTries))
	for _, a := range interleave(w.Addrs) {
		if _, err := x.check(&w, a); err != nil {
			never = err
			continue
		}
		if try = append(try, a); len(try) == MaxTries {
			break
		}
	}
	if len(try) == 0 {
		return Dialled{}, never
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if len(try) == 1 {
		return x.dial(ctx, &w, try[0])
	}
	return x.race(ctx, &w, try)
}

// race starts a dial every stagger, or as soon as one fails, and returns the
// first that connects.
func (x *Dialer) race(ctx context.Context, w *Want, addrs []netip.Addr) (Dialled, error) {
	type result struct {
		c   Dialled
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, len(addrs))
	var last error
	next, running := 0, 0
	for next < len(addrs) || running > 0 {
		var wait <-chan time.Time
		if next < len(addrs) {
			a := addrs[next]
			next++
			running++
			go func() {
				var c Dialled
				err := panics.Try(func() (err error) { c, err = x.dial(ctx, w, a); return err })
				results <- result{c, err}
			}()
			if next < len(addrs) {
				wait = time.After(stagger)
			}
		}
		select {
		case <-wait:
		case r := <-results:
			running--
			if r.err != nil {
				panics.Again(r.err)
				last = r.err
				continue
			}
			left := running
			go func() { // those still under way
				for range left {
					if r := <-results; r.err == nil {
						r.c.Close()
					}
				}
			}()
			return r.c, nil
		}
	}
	return Dialled{}, last
}

// dial connects to one address. The check runs in Control, between socket(2)
// and connect(2), on the address that is passed to connect.
func (x *Dialer) dial(ctx context.Context, w *Want, a netip.Addr) (Dialled, error) {
	to := netip.AddrPortFrom(a, w.Port)
	if x.Proxy != nil {
		d, err := x.check(w, a)
		if err != nil {
			return Dialled{}, err
		}
		c, revoked, err := x.Proxy.connect(ctx, to)
		return Dialled{c, a.Unmap(), d, revoked}, err
	}
	var d firewall.Decision
	size := buffers.Of(ctx)
	nd := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 30 * time.Second, Count: 4},
		Control: func(network, address string, c syscall.RawConn) error {
			got, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("dial %s: %w", address, err)
			}
			if d, err = x.check(w, got.Addr()); err != nil {
				return err
			}
			return size.Dialled(c)
		},
	}
	c, err := nd.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return Dialled{}, err
	}
	return Dialled{c.(*net.TCPConn), a.Unmap(), d, nil}, nil
}

// interleave alternates the families, IPv6 first if there is any, and keeps the
// order within each.
func interleave(addrs []netip.Addr) []netip.Addr {
	var four, six []netip.Addr
	for _, a := range addrs {
		if a.Unmap().Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(four), len(six)) {
		if i < len(six) {
			out = append(out, six[i])
		}
		if i < len(four) {
			out = append(out, four[i])
		}
	}
	return out
}
