package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Upstream dials the resolvers and the upstream proxy, and nothing else. Their
// addresses come from the policy or else from resolv.conf, never from a worker or
// from an answer to a worker's question.
type Upstream struct {
	local *Local
	mu    sync.RWMutex
	known map[netip.AddrPort]Trust
}

// Trust is who named an upstream.
type Trust int

// The trusts. The zero Trust is a former upstream, which is never dialled.
const (
	Former Trust = iota
	// OfFile is an upstream that the repository named. It is checked like a
	// worker's destination, so that no metadata or loopback address and none of
	// the machine's own is reached (B26, B31).
	OfFile
	// OfUser is an upstream of the user or the machine: dialled wherever it is.
	OfUser
)

// NewUpstream returns a dialler without upstreams; local has the addresses of the
// guard's own network.
func NewUpstream(local *Local) *Upstream {
	return &Upstream{local: local, known: map[netip.AddrPort]Trust{}}
}

// Add makes an address an upstream, or refuses it.
func (u *Upstream) Add(a netip.AddrPort, trust Trust) error {
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	if trust != OfUser {
		if err := firewall.CheckUpstreamAddr(a.Addr()); err != nil {
			return err
		}
	}
	u.mu.Lock()
	u.known[a] = max(trust, u.known[a])
	u.mu.Unlock()
	return nil
}

// Replace replaces the machine's resolvers. The former ones are no longer dialled,
// and stay closed to workers.
func (u *Upstream) Replace(before, now []netip.AddrPort) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range before {
		u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = Former
	}
	for _, a := range now {
		u.known[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = OfUser
	}
}

// errClosed means that a repository must not name the upstream's address.
var errClosed = errors.New("it is closed to a repository")

// Dial connects by network "udp" or "tcp".
func (u *Upstream) Dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	u.mu.RLock()
	trust := u.known[to]
	u.mu.RUnlock()
	if trust == Former {
		return nil, fmt.Errorf("%s is not an upstream of this guard", to)
	}
	if trust != OfUser {
		if err := u.check(to.Addr()); err != nil {
			return nil, err
		}
	}
	d := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		return buffers.Of(ctx).Dialled(c)
	}}
	return d.DialContext(ctx, network, to.String())
}

// check refuses an upstream of the repository that is the machine itself.
func (u *Upstream) check(a netip.Addr) error {
	if err := firewall.CheckUpstreamAddr(a); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	switch place, err := u.local.Place(a); {
	case err != nil:
		return err
	case place == Own:
		return fmt.Errorf("%w: %s is an address of this machine", errClosed, a)
	}
	return nil
}

// Has reports whether an address is that of an upstream, on any port.
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
