package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Place classifies an address as seen from the guard.
type Place int

// The places. Far is every address that is none of the others.
const (
	Far     Place = iota
	Own           // an address of the guard's own network namespace
	Gateway       // a router: with Docker, the host
	OnLink        // in the prefix of an interface: with Docker, another container
)

// Local has the addresses of the guard's own network namespace. They change: an
// engine attaches networks; on the machine's own network, interfaces come and go.
// The kernel reports changes, and the next call reads them again; if it can't,
// they are read again when older than a second.
type Local struct {
	// Host are further addresses of the host; they count as gateways.
	Host []netip.Addr
	// Loopback are addresses that lead to the loopback interface of the machine; they
	// count as own ones.
	Loopback []netip.Addr

	mu       sync.Mutex
	at       time.Time
	changes  *changes
	own      map[netip.Addr]bool
	ranges   []netip.Prefix // of own addresses: local routes
	gateways map[netip.Addr]bool
	links    []netip.Prefix
	ipv6     bool
}

// Maximum ages of the addresses: if the kernel reports changes, and if it
// doesn't.
const (
	maxAgeTold = time.Minute
	maxAge     = time.Second
)

// Place classifies an address. On error the guard doesn't know its own addresses,
// and nothing may be dialled.
func (l *Local) Place(a netip.Addr) (Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return Own, err
	}
	a = a.Unmap()
	switch {
	case l.own[a], slices.Contains(l.Loopback, a):
		return Own, nil
	case l.gateways[a], slices.Contains(l.Host, a):
		return Gateway, nil
	}
	holds := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case slices.ContainsFunc(l.ranges, holds):
		return Own, nil
	case slices.ContainsFunc(l.links, holds):
		return OnLink, nil
	}
	return Far, nil
}

// IPv6 reports whether the guard has an IPv6 address that isn't link-local.
func (l *Local) IPv6() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh() == nil && l.ipv6
}

func (l *Local) refresh() error {
	now := time.Now()
	age := maxAge
	if l.changes != nil {
		age = maxAgeTold
	}
	if l.own != nil && now.Sub(l.at) < age && !l.changes.any() {
		return nil
	}
	if l.changes == nil {
		l.changes = watchChanges() // before reading, so that no change is missed
	}
	l.own = nil // after an error nothing counts as known
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("own addresses: %w", err)
	}
	r, err := readRoutes()
	if err != nil {
		return fmt.Errorf("own routes: %w", err)
	}
	l.ranges = r.local
	l.own, l.gateways, l.links, l.ipv6, l.at = map[netip.Addr]bool{}, r.gateways, r.links, false, now
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		ip = ip.Unmap()
		bits, _ := n.Mask.Size()
		l.own[ip] = true
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		l.links = append(l.links, netip.PrefixFrom(ip, bits).Masked())
		l.ipv6 = l.ipv6 || ip.Is6()
	}
	return nil
}
