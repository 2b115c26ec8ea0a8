package proxy

import (
	"context"
	"net"
	"net/netip"

	"github.com/llmdo/workshop/internal/guard/events"
)

// TCP carries a connection to a port other than 80 and 443: the dialled address
// must be pinned for a name that the policy allows there, or be in an allowed range
// (B25).
func (r *Room) TCP(ctx context.Context, c *net.TCPConn) {
	orig, err := r.original(c)
	if err != nil {
		Reset(c)
		return
	}
	r.byAddress(ctx, events.TCP, c, orig)
}

// byAddress carries a connection to the address that the worker dialled.
func (r *Room) byAddress(ctx context.Context, kind events.Kind, c *net.TCPConn, orig netip.AddrPort) {
	p := r.Policy()
	x := r.route(p, netip.AddrPort{}, authority{addr: orig.Addr(), port: orig.Port()})
	if !x.Allowed {
		r.deny(kind, x.Decision, x.name, orig)
		Reset(c)
		return
	}
	r.carryTo(ctx, kind, c, p, x, orig, nil, nil)
}

// start sends what was already read of a connection, frees its place, and
// splices.
func (r *Room) start(c *net.TCPConn, w *way, head []byte, large *place) {
	r.spliceAfter(c, w, func() (err error) {
		if len(head) > 0 {
			_, err = w.Write(head)
			head = nil // may be large
		}
		if large != nil {
			large.free()
		}
		return err
	})
}
