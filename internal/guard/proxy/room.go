package proxy

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/share"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Deadlines. Tests don't change them.
const (
	helloTimeout = 10 * time.Second // from accept to a complete ClientHello or request head
	idleTimeout  = 2 * time.Minute  // between two requests of one connection
)

// Room has what the handlers need of a room.
type Room struct {
	// Policy returns the room's current policy.
	Policy   func() *policy.Room
	Resolver *dns.Resolver
	Pins     *dns.Pins
	Dialer   *egress.Dialer
	Report   func(events.Event)
	// Large bounds large heads, Asking look-ups; nil: nothing does.
	Large, Asking *share.Room
	// Flows has every carried connection.
	Flows *Flows
	// Admit, if not nil, may override the decision for an allowed name before it
	// is used.
	Admit func(firewall.Name, firewall.Decision) firewall.Decision
	// Budgets of the room's rules.
	Budgets *Budgets
	// Roots returns what the certificates of endpoints' hosts are verified by; nil, or a
	// nil pool: endpoints are closed.
	Roots func() *x509.CertPool
	// Secure bounds connections to the hosts of endpoints; nil: nothing does.
	Secure *share.Room
	// Lease takes the value that is leased for a line's credential; nil, or a nil value:
	// there is none, and the line's requests are answered 503.
	Lease func(*firewall.Rule) *leases.Held
	// Ask has a person asked about a push to a repository with the credential of a line, while
	// alive returns true; nil, or an error: it isn't sent.
	Ask func(line *firewall.Rule, repository string, refs []lease.Pushed, alive func() bool) error
	// Original returns what a worker dialled; nil: [OriginalDst].
	Original func(*net.TCPConn) (netip.AddrPort, error)
}

func (r *Room) original(c *net.TCPConn) (netip.AddrPort, error) {
	if r.Original != nil {
		return r.Original(c)
	}
	return OriginalDst(c)
}

// dialRequest is who requested an upstream connection, and how.
type dialRequest struct {
	kind events.Kind
	in   *net.TCPConn
	name string // "" if only an address was requested
	// decide decides about it by another policy.
	decide func(*policy.Room) firewall.Decision
}

// errNoAddress means that an allowed name has no address that may be dialled.
var errNoAddress = errors.New("the name has no address")

// errLookUp means that no resolver returned the addresses of an allowed name.
var errLookUp = errors.New("look-up")

// resolve returns the addresses of an allowed name, with IPv6 only if the guard
// has it.
func (r *Room) resolve(ctx context.Context, n firewall.Name) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, egress.Timeout)
	defer cancel()
	type half struct {
		a   dns.Answer
		err error
	}
	six := make(chan half, 1)
	if r.Dialer.Local.IPv6() {
		if a, ok := r.Resolver.Cached(n, dns.AAAA); ok {
			six <- half{a, nil}
		} else {
			go func() {
				var a dns.Answer
				err := panics.Try(func() (err error) { a, err = r.Resolver.Lookup(ctx, r.Asking, n, dns.AAAA); return err })
				six <- half{a, err}
			}()
		}
	} else {
		six <- half{}
	}
	four, err := r.Resolver.Lookup(ctx, r.Asking, n, dns.A)
	h := <-six
	panics.Again(h.err)
	addrs := append(append([]netip.Addr{}, h.a.Addrs...), four.Addrs...)
	switch {
	case len(addrs) > 0:
		return addrs, nil
	case err != nil, h.err != nil:
		return nil, fmt.Errorf("%w: %w", errLookUp, cmp.Or(err, h.err))
	}
	return nil, errNoAddress
}

// dialName resolves an allowed name and dials it; d is the decision that allowed
// it. orig is what the worker dialled; it is never used, and reported if the name
// doesn't have that address (B24).
func (r *Room) dialName(ctx context.Context, a dialRequest, p *policy.Room, d firewall.Decision, n firewall.Name, orig netip.AddrPort, port uint16) (*way, error) {
	a.name = n.String()
	addrs, err := r.resolve(ctx, n)
	if err != nil {
		r.failed(ctx, events.Event{Reason: events.ReasonUnresolved}, a, d, nil, port)
		return nil, err
	}
	// An address that the guard answered earlier isn't a mismatch: names move.
	if orig.IsValid() && !slices.Contains(addrs, orig.Addr()) && !slices.Contains(r.Pins.Names(orig.Addr()), n) {
		r.Report(events.Event{
			Kind: a.kind, Verdict: events.Note, Reason: events.ReasonMismatch, Name: n.String(),
			Address: orig.Addr().String(), Port: orig.Port(), Protocol: "tcp",
		})
	}
	return r.open(ctx, a, p, d, addrs, port)
}

// failed reports an allowed connection that failed, so that it isn't taken for a
// refusal; e has the reason. It leaves out clients that have disconnected, and
// names under a wildcard: a worker could invent those and fill the log. A failure of
// the upstream proxy is reported without them.
func (r *Room) failed(ctx context.Context, e events.Event, a dialRequest, d firewall.Decision, addrs []netip.Addr, port uint16) {
	learned := d.Reason == firewall.ReasonLearned && e.Reason == events.ReasonUnresolved
	invented := !learned && (d.Rule == nil || d.Rule.Host.IsWildcard())
	e.Kind, e.Verdict, e.Protocol = a.kind, events.Note, "tcp"
	switch {
	case ctx.Err() != nil, invented && e.Reason != events.ReasonProxy:
		return
	case invented:
		r.Report(e)
		return
	}
	e.Name, e.Port = a.name, port
	if len(addrs) == 1 {
		e.Address = addrs[0].String()
	}
	if d.Rule != nil {
		e.Rule = d.Rule.Line
	}
	r.Report(e)
}

func (r *Room) never(kind events.Kind, never *egress.NeverError, name string, port uint16) {
	e := events.Denied(kind, never.Decision)
	e.Name, e.Address, e.Port, e.Protocol = name, never.Addr.String(), port, "tcp"
	r.Report(e)
}

// deny reports a refused connection.
func (r *Room) deny(kind events.Kind, d firewall.Decision, name string, orig netip.AddrPort) {
	if strings.HasPrefix(d.Suggest, "{cidr:") {
		d = r.Dialer.Refused(r.Policy().Matcher, d, orig.Addr(), orig.Port())
	}
	e := events.Denied(kind, d)
	e.Name, e.Port, e.Protocol = clip.Bytes(name, maxText), orig.Port(), "tcp"
	if orig.Addr().IsValid() {
		e.Address = orig.Addr().String()
	}
	r.Report(e)
}

// maxText bounds text that comes from a worker, in bytes.
const maxText = 300
