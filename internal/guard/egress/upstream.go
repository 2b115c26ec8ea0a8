package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Upstream dials the resolvers and the upstream proxy, and nothing else: the
// addresses are fixed when the guard starts. It is never given an address that
// a worker or a DNS answer named.
type Upstream struct{ known map[netip.AddrPort]bool }

// NewUpstream makes the dialler for exactly these addresses.
func NewUpstream(addrs ...netip.AddrPort) *Upstream {
	u := &Upstream{known: make(map[netip.AddrPort]bool, len(addrs))}
	for _, a := range addrs {
		u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
	}
	return u
}

// Dial connects by network "udp" or "tcp".
func (u *Upstream) Dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	if !u.known[to] {
		return nil, fmt.Errorf("%s is not an upstream of this guard", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to.String())
}

// Has tells whether an address is that of an upstream, on whatever port.
func (u *Upstream) Has(a netip.Addr) bool {
	a = a.Unmap()
	for k := range u.known {
		if k.Addr() == a {
			return true
		}
	}
	return false
}
