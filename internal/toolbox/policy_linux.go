package toolbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/toolbox/fetch"
)

// policyDialer makes what fetch_url connects by where there is no guard: it
// decides about the name, resolves it here, and checks the never-list on the
// address that is dialled, immediately before. It is used for each hop.
func policyDialer(policy []byte) (fetch.Dial, error) {
	if len(policy) == 0 {
		return func(context.Context, string, uint16) (net.Conn, error) {
			return nil, errors.New("the worker has no network (network: none in workshop.yaml)")
		}, nil
	}
	p, err := firewall.ParsePolicy(policy)
	if err != nil {
		return nil, fmt.Errorf("the worker's network policy: %w", err)
	}
	if len(p.Rooms) != 1 {
		return nil, fmt.Errorf("the worker's network policy has %d rooms, not one", len(p.Rooms))
	}
	m := p.Rooms[0].Compile()
	local := &egress.Local{}
	x := &egress.Dialer{Local: local, Upstream: egress.NewUpstream(local)}
	return func(ctx context.Context, host string, port uint16) (net.Conn, error) {
		w := egress.Want{Matcher: m, Port: port}
		if a, err := netip.ParseAddr(host); err == nil {
			w.Decision, w.Addrs = m.Addr(a, port), []netip.Addr{a}
		} else {
			name, err := firewall.ParseName(host)
			if err != nil {
				return nil, err
			}
			w.Decision = m.Name(name, port)
		}
		if !w.Decision.Allowed {
			return nil, refusedBy(w.Decision, host, port)
		}
		if w.Addrs == nil {
			var err error
			if w.Addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
				return nil, err
			}
		}
		c, err := x.Dial(ctx, w)
		if never, ok := errors.AsType[*egress.NeverError](err); ok {
			return nil, refusedBy(never.Decision, fmt.Sprintf("%s (%s)", host, never.Addr), port)
		}
		if err != nil {
			return nil, err
		}
		return c.TCPConn, nil
	}, nil
}

// refusedBy is what a person is told of a decision.
func refusedBy(d firewall.Decision, host string, port uint16) error {
	text := fmt.Sprintf("the worker's network refuses %s, port %d: %s", host, port, d.Reason)
	if d.Suggest != "" {
		text += "; to allow it, add to network.allow: - " + d.Suggest
	}
	return errors.New(text)
}
