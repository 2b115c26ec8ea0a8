package guard

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/proxy"
)

// triedFor is how long the host tries from a worker what it asked about, at most.
const triedFor = 30 * time.Second

// maxTried bounds what is tried from a room at the same time.
const maxTried = 100

// tried are the sources of what the host tries from a room (control.Request.From).
// The zero value is ready for use.
type tried struct {
	mu    sync.Mutex
	until map[netip.AddrPort]time.Time
}

// add expects connections and questions from a source.
func (t *tried) add(from netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(t.until, func(_ netip.AddrPort, until time.Time) bool { return until.Before(now) })
	if t.until == nil {
		t.until = map[netip.AddrPort]time.Time{}
	}
	if len(t.until) < maxTried {
		t.until[from] = now.Add(triedFor)
	}
}

// has reports whether a connection or question is what the host tries: over IPv4 it
// has the address of a source, over IPv6, where there is only one, the port.
func (t *tried) has(from netip.AddrPort) bool {
	addr := from.Addr().Unmap()
	t.mu.Lock()
	defer t.mu.Unlock()
	for x, until := range t.until {
		if (addr == x.Addr() || addr.Is6() && from.Port() == x.Port()) && time.Now().Before(until) {
			return true
		}
	}
	return false
}

// proxyOf is the proxy for one client.
func (r *room) proxyOf(p *proxy.Room, c *net.TCPConn) *proxy.Room {
	from, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !r.tried.has(from.AddrPort()) {
		return p
	}
	of := *p
	of.Report = events.Explained(p.Report)
	return &of
}
