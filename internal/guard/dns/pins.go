package dns

import (
	"net/netip"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Lifetimes of a pin: the answer's TTL within bounds, and a grace for clients
// that connect late.
const (
	minPin   = 30 * time.Second
	maxPin   = time.Hour
	pinGrace = 60 * time.Second
)

// Bounds of the pins of one room.
const (
	maxPinnedAddrs = 16_384
	maxNamesOfAddr = 64
)

// Pins remembers which names were answered with which addresses in a room: a
// port other than 80 and 443 opens to a pinned address only (B25). The zero
// value is ready for use.
type Pins struct {
	mu    sync.Mutex
	addrs map[netip.Addr]map[firewall.Name]time.Time
}

// Add pins the addresses of an answer. It must happen before the client gets it.
func (p *Pins) Add(n firewall.Name, addrs []netip.Addr, ttl time.Duration) {
	until := time.Now().Add(max(minPin, min(maxPin, ttl)) + pinGrace)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs == nil {
		p.addrs = map[netip.Addr]map[firewall.Name]time.Time{}
	}
	for _, a := range addrs {
		names := p.addrs[a]
		if names == nil {
			if len(p.addrs) >= maxPinnedAddrs {
				p.sweep()
			}
			names = map[firewall.Name]time.Time{}
			p.addrs[a] = names
		}
		if _, ok := names[n]; !ok && len(names) >= maxNamesOfAddr {
			dropOldest(names)
		}
		names[n] = until
	}
}

// Names returns the names that an address is pinned for.
func (p *Pins) Names(a netip.Addr) []firewall.Name {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	names := p.addrs[a.Unmap()]
	var out []firewall.Name
	for n, until := range names {
		if now.Before(until) {
			out = append(out, n)
		} else {
			delete(names, n)
		}
	}
	if names != nil && len(names) == 0 {
		delete(p.addrs, a.Unmap())
	}
	return out
}

// sweep makes space: what has expired goes, or an eighth of all.
func (p *Pins) sweep() {
	now := time.Now()
	for a, names := range p.addrs {
		for n, until := range names {
			if now.After(until) {
				delete(names, n)
			}
		}
		if len(names) == 0 {
			delete(p.addrs, a)
		}
	}
	for a := range p.addrs {
		if len(p.addrs) < maxPinnedAddrs*7/8 {
			return
		}
		delete(p.addrs, a)
	}
}

func dropOldest(names map[firewall.Name]time.Time) {
	var oldest firewall.Name
	var at time.Time
	for n, until := range names {
		if at.IsZero() || until.Before(at) {
			oldest, at = n, until
		}
	}
	delete(names, oldest)
}
