package dns

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
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
	addrs map[netip.Addr]map[firewall.Name]pin
	names map[firewall.Name][]netip.Addr // the same pairs
	pairs int
}

// pin is an address that was answered for a name.
type pin struct {
	until time.Time
	asked time.Time // last
}

// Add pins the addresses of an answer. Call it before the answer is sent.
func (p *Pins) Add(n firewall.Name, addrs []netip.Addr, ttl time.Duration) {
	now := time.Now()
	until := now.Add(max(minPin, min(maxPin, ttl)) + pinGrace)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs == nil {
		p.addrs, p.names = map[netip.Addr]map[firewall.Name]pin{}, map[firewall.Name][]netip.Addr{}
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
				p.addrs[a] = map[firewall.Name]pin{}
			}
			p.names[n] = append(p.names[n], a)
			p.pairs++
		}
		p.addrs[a][n] = pin{until, now}
	}
}

// Names returns the names that an address is pinned for, the one that was asked for
// last first: that of a connection, most likely.
func (p *Pins) Names(a netip.Addr) []firewall.Name {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	names := p.addrs[a.Unmap()]
	var out []firewall.Name
	for n, pin := range names {
		if now.Before(pin.until) {
			out = append(out, n)
		}
	}
	sortfunc.Stable(out, func(x, y firewall.Name) int {
		return cmp.Or(names[y].asked.Compare(names[x].asked), cmp.Compare(x.String(), y.String()))
	})
	return out
}

// sweep makes room: it removes expired pins, then whole addresses until an eighth
// is free.
func (p *Pins) sweep() {
	now := time.Now()
	for a, names := range p.addrs {
		for n, pin := range names {
			if now.After(pin.until) {
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
	for n, pin := range p.addrs[a] {
		if at.IsZero() || pin.until.Before(at) {
			oldest, at = n, pin.until
		}
	}
	p.drop(a, oldest)
}

func (p *Pins) dropOldestAddr(n firewall.Name) {
	var oldest netip.Addr
	var at time.Time
	for _, a := range p.names[n] {
		if until := p.addrs[a][n].until; at.IsZero() || until.Before(at) {
			oldest, at = a, until
		}
	}
	p.drop(oldest, n)
}
