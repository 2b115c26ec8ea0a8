// Package guard decides and carries what the rooms of a workshop send: names by
// DNS, connections by name or pinned address, everything by policy. It holds no
// capability; all it has of a room are the sockets that the room handed over.
package guard

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// MaxConns bounds the connections of all rooms together; more wait. Where the
// guard may not open descriptors for so many, it is fewer.
const MaxConns = 4096

// fdsPerConn are two sockets and the two pipes of splice(2), two ends each;
// fdsReserve is for everything else: rooms' sockets, queries, files.
const (
	fdsPerConn = 6
	fdsReserve = 512
)

// connLimit is MaxConns, or what RLIMIT_NOFILE lets through.
func connLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return MaxConns
	}
	fit := (int64(min(l.Cur, 1<<30)) - fdsReserve) / fdsPerConn
	return int(max(16, min(MaxConns, fit)))
}

// Config is where a guard finds what it needs.
type Config struct {
	// Policy is what it starts with, expanded.
	Policy *firewall.Policy
	// Sockets is the directory with one socket per room, <room>.sock.
	Sockets string
	// ResolvConf is read where the policy names no resolver.
	ResolvConf string
	// Out gets READY and the events.
	Out io.Writer
}

// Guard serves rooms.
type Guard struct {
	config   Config
	store    policy.Store
	sink     *events.Sink
	dialer   *egress.Dialer
	resolver *dns.Resolver
	slots    chan struct{}
	rooms    map[string]*room
}

// New makes a guard; it starts nothing yet.
func New(c Config) (*Guard, error) {
	g := &Guard{config: c, slots: make(chan struct{}, connLimit()), rooms: map[string]*room{}}
	g.store.Swap(c.Policy)
	servers, err := resolvers(c.Policy.Resolvers, c.ResolvConf)
	if err != nil {
		return nil, err
	}
	if err := g.dialers(servers); err != nil {
		return nil, err
	}
	for _, p := range c.Policy.Rooms {
		if p.Mode == firewall.None {
			continue
		}
		g.rooms[p.Room] = newRoom(g, p.Room)
	}
	return g, nil
}

// dialers fixes the addresses of the upstreams.
func (g *Guard) dialers(servers []netip.AddrPort) error {
	local := &egress.Local{}
	upstream := egress.NewUpstream(servers...)
	g.resolver = dns.NewResolver(servers, upstream.Dial)
	g.dialer = &egress.Dialer{Local: local, Upstream: upstream}
	if g.config.Policy.Proxy == "" {
		return nil
	}
	host, port, auth, err := egress.ParseProxy(g.config.Policy.Proxy)
	if err != nil {
		return err
	}
	addr, err := g.proxyAddr(host)
	if err != nil {
		return fmt.Errorf("network.proxy: %w", err)
	}
	at := netip.AddrPortFrom(addr, port)
	g.dialer.Upstream = egress.NewUpstream(append(servers, at)...)
	g.resolver = dns.NewResolver(servers, g.dialer.Upstream.Dial)
	g.dialer.Proxy = egress.NewProxy(g.dialer.Upstream, at, auth)
	return nil
}

// proxyAddr returns the address of the upstream proxy, once and for all.
func (g *Guard) proxyAddr(host string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap(), nil
	}
	name, err := firewall.ParseName(host)
	if err != nil {
		return netip.Addr{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := g.resolver.Lookup(ctx, name, dns.A)
	if err == nil && len(a.Addrs) == 0 {
		a, err = g.resolver.Lookup(ctx, name, dns.AAAA)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	if len(a.Addrs) == 0 {
		return netip.Addr{}, fmt.Errorf("%s has no address", name)
	}
	return a.Addrs[0], nil
}

// Run serves all rooms until ctx ends. It writes READY when each has been
// served for the first time.
func (g *Guard) Run(ctx context.Context) error {
	out := &lockedWriter{w: g.config.Out}
	g.sink = events.NewSink(out, func(room string) []string { return g.store.Room(room).Workers })
	defer g.sink.Close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	for _, p := range g.config.Policy.Publish {
		r := g.rooms[p.Room]
		if r == nil {
			return fmt.Errorf("port %d is published for room %q, which has no network", p.Listen, p.Room)
		}
		l, err := listenInbound(p.Listen)
		if err != nil {
			return fmt.Errorf("published port %d: %w", p.Target, err)
		}
		wg.Go(func() { r.publish(ctx, l, p) })
	}
	for _, r := range g.rooms {
		wg.Go(func() { r.run(ctx) })
	}
	wg.Go(func() { g.reap(ctx) })
	for _, r := range g.rooms {
		select {
		case <-r.served:
		case <-ctx.Done():
			return nil
		}
	}
	if _, err := io.WriteString(out, "READY\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Apply makes p the policy: from the next decision on, and for what is being
// carried, which is reset where p doesn't allow it (B27). New ports need the
// room's rules too, which Apply doesn't change.
func (g *Guard) Apply(p *firewall.Policy) (generation uint64, revoked int) {
	st := g.store.Swap(p)
	for name, r := range g.rooms {
		revoked += r.revoke(g.store.Room(name))
	}
	return st.Generation, revoked
}

func (g *Guard) reap(ctx context.Context) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, r := range g.rooms {
				r.reap()
			}
		}
	}
}

func (g *Guard) socket(room string) string { return filepath.Join(g.config.Sockets, room+".sock") }

func listenInbound(port uint16) (*net.TCPListener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // splice(2) wants plain TCP
	l, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
