package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Upstream dials the resolvers and the upstream proxy, and nothing else. Their
// addresses come from the policy and, where that names none, from resolv.conf; it
// is never given an address that a worker, or an answer to a worker's question,
// named.
type Upstream struct {
	mu    sync.RWMutex
	known map[netip.AddrPort]bool // false: it was one, and nobody dials it
}

// NewUpstream makes the dialler for exactly these addresses.
func NewUpstream(addrs ...netip.AddrPort) *Upstream {
	u := &Upstream{known: make(map[netip.AddrPort]bool, len(addrs))}
	for _, a := range addrs {
		u.add(a)
	}
	return u
}

func (u *Upstream) add(a netip.AddrPort) {
	u.mu.Lock()
	u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
	u.mu.Unlock()
}

// Replace makes others the resolvers. Those of before aren't dialled any more, and
// stay closed to workers.
func (u *Upstream) Replace(before, now []netip.AddrPort) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range before {
		u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = false
	}
	for _, a := range now {
		u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
	}
}

// Dial connects by network "udp" or "tcp".
func (u *Upstream) Dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	u.mu.RLock()
	known := u.known[to]
	u.mu.RUnlock()
	if !known {
		return nil, fmt.Errorf("%s is not an upstream of this guard", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to.String())
}

// Has tells whether an address is that of an upstream, on whatever port.
func (u *Upstream) Has(a netip.Addr) bool {
	a = a.Unmap()
	u.mu.RLock()
	defer u.mu.RUnlock()
	for k := range u.known {
		if k.Addr() == a {
			return true
		}
	}
	return false
}
