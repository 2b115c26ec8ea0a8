package dns

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Lifetime of a pin: the answer's TTL within bounds, and a grace period for
// clients that connect late.
const (
	minPin   = 30 * time.Second
	maxPin   = time.Hour
	pinGrace = 60 * time.Second
)

// Bounds of the pins of one room. Their number depends on the worker, and with a
// wildcard on the zone's owner: all pins together stay below 10 MiB.
const (
	maxPins        = 16_384 // pairs of address and name
	maxNamesOfAddr = 64
	maxAddrsOfName = 64 // over time: a zone may answer differently each second
)

// Pins records which addresses were answered for which names in a room: ports
// other than 80 and 443 are open to pinned addresses only (B25). The zero value is
// ready for use.
type Pins struct {
	mu    sync.Mutex
	addrs map[netip.Addr]map[firewall.Name]time.Time
	names map[firewall.Name][]netip.Addr // the same pairs
	pairs int
}

// Add pins the addresses of an answer. Call it before the answer is sent.
func (p *Pins) Add(n firewall.Name, addrs []netip.Addr, ttl time.Duration) {
	until := time.Now().Add(max(minPin, min(maxPin, ttl)) + pinGrace)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs == nil {
		p.addrs, p.names = map[netip.Addr]map[firewall.Name]time.Time{}, map[firewall.Name][]netip.Addr{}
	}
	for _, a := range addrs {
		if _, ok := p.addrs[a][n]; !ok {
			if len(p.addrs[a]) >= maxNamesOfAddr {
				p.dropOldestName(a)
			}
			if len(p.names[n]) >= maxAddrsOfName {
				p.dropOldestAddr(n)
			}
			if p.pairs >= maxPins {
				p.sweep()
			}
			if p.addrs[a] == nil {
				p.addrs[a] = map[firewall.Name]time.Time{}
			}
			p.names[n] = append(p.names[n], a)
			p.pairs++
		}
		p.addrs[a][n] = until
	}
}

// Names returns the names that an address is pinned for.
func (p *Pins) Names(a netip.Addr) []firewall.Name {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []firewall.Name
	for n, until := range p.addrs[a.Unmap()] {
		if now.Before(until) {
			out = append(out, n)
		}
	}
	return out
}

// sweep makes room: it removes expired pins, then whole addresses until an eighth
// is free.
func (p *Pins) sweep() {
	now := time.Now()
	for a, names := range p.addrs {
		for n, until := range names {
			if now.After(until) {
				p.drop(a, n)
			}
		}
	}
	for a, names := range p.addrs {
		if p.pairs < maxPins*7/8 {
			return
		}
		for n := range names {
			p.drop(a, n)
		}
	}
}

func (p *Pins) drop(a netip.Addr, n firewall.Name) {
	delete(p.addrs[a], n)
	if len(p.addrs[a]) == 0 {
		delete(p.addrs, a)
	}
	if at := slices.Index(p.names[n], a); at >= 0 {
		p.names[n] = slices.Delete(p.names[n], at, at+1)
	}
	if len(p.names[n]) == 0 {
		delete(p.names, n)
	}
	p.pairs--
}

func (p *Pins) dropOldestName(a netip.Addr) {
	var oldest firewall.Name
	var at time.Time
	for n, until := range p.addrs[a] {
		if at.IsZero() || until.Before(at) {
			oldest, at = n, until
		}
	}
	p.drop(a, oldest)
}

func (p *Pins) dropOldestAddr(n firewall.Name) {
	var oldest netip.Addr
	var at time.Time
	for _, a := range p.names[n] {
		if until := p.addrs[a][n]; at.IsZero() || until.Before(at) {
			oldest, at = a, until
		}
	}
	p.drop(oldest, n)
}
