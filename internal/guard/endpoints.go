package guard

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/proxy"
	"github.com/llmdo/workshop/internal/room/handover"
)

// leaseTime is how long a value of a credential lasts; tests set it.
var leaseTime = lease.Lasting

// taken is called with each value that a request takes; tests set it.
var taken = func(*leases.Held) {}

// endpoint is the listener of one endpoint of a room.
type endpoint struct {
	at string
	l  *net.TCPListener
}

// handle serves one connection.
func (e endpoint) handle(p *proxy.Room, ctx context.Context, c *net.TCPConn) {
	p.Endpoint(ctx, c, e.at)
}

// endpoints requests the listeners of the policy's endpoints from the room. On error
// nothing stays open. A running guard's set of them doesn't change: [firewall.Policy.Fixed].
func endpoints(client *handover.Client, p firewall.RoomPolicy) (out []endpoint, err error) {
	defer func() {
		if err != nil {
			for _, e := range out {
				e.l.Close()
			}
			out = nil
		}
	}()
	for _, r := range p.Allow {
		if r.Endpoint.IsZero() {
			continue
		}
		f, err := client.Listen(int(r.Endpoint.Port))
		if err != nil {
			return out, fmt.Errorf("endpoint %s: %w", r.Endpoint.At, err)
		}
		l, err := listener(f)
		f.Close() // l is a duplicate
		if err != nil {
			return out, fmt.Errorf("endpoint %s: %w", r.Endpoint.At, err)
		}
		out = append(out, endpoint{r.Endpoint.At, l})
	}
	return out, nil
}

// setRoots makes the policy's roots those of endpoints' hosts. One that can't be read is
// left out: nothing is signed by it.
func (g *Guard) setRoots(p *firewall.Policy) {
	var pool *x509.CertPool
	for _, der := range p.Roots {
		if c, err := x509.ParseCertificate(der); err == nil {
			if pool == nil {
				pool = x509.NewCertPool()
			}
			pool.AddCert(c)
		}
	}
	g.roots.Store(pool)
}

// ownedBy returns an error if a live allow has a name that an endpoint of its rooms has,
// which it couldn't open.
func (l *live) ownedBy(c firewall.Live) error {
	for _, r := range l.base.Rooms {
		if c.Deny || c.Room != "" && c.Room != r.Room {
			continue
		}
		for _, line := range r.Allow {
			if !line.Endpoint.IsZero() && line.Host == c.Rule.Host {
				return fmt.Errorf("%s has the endpoint %s and is reached by it alone: what it lets through, %s says", line.Host, line.Endpoint.At, line.Line)
			}
		}
	}
	return nil
}

// ask has a person asked about a push with the credential of a line.
func (r *room) ask(rule *firewall.Rule, repository string, refs []lease.Pushed, alive func() bool) error {
	l, ok := lease.LineOf(r.name, *rule)
	if !ok {
		return leases.ErrNoLease
	}
	return r.guard.leases.Ask(l, repository, refs, alive)
}

// lease takes the value of a line's credential; nil if there is none now.
func (r *room) lease(rule *firewall.Rule) *leases.Held {
	l, ok := lease.LineOf(r.name, *rule)
	if !ok {
		return nil
	}
	h := r.guard.leases.Take(l)
	if h != nil {
		taken(h)
	}
	return h
}

// proxyLease returns what takes the value of the upstream proxy's credential; there is none
// where the proxy has no line. A running guard's proxy doesn't change: [firewall.Policy.Fixed].
func (g *Guard) proxyLease() func() *leases.Held {
	l, ok := lease.ProxyLine(g.config.Policy)
	return func() *leases.Held {
		if !ok {
			return nil
		}
		h := g.leases.Take(l)
		if h != nil {
			taken(h)
		}
		return h
	}
}
