// Package guard decides and carries the egress of a workshop's rooms: DNS
// questions, and connections by name or pinned address, all by policy. It holds no
// capability; all it has of a room is the sockets that the room handed over.
package guard

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/kept"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/share"
	"github.com/llmdo/workshop/internal/made"
)

// MaxConns bounds the connections of all rooms together; further ones wait. With a
// lower RLIMIT_NOFILE it is fewer.
const MaxConns = 2048

// fdsPerConn is two sockets and the two pipes of splice(2), two ends each, or
// the client's socket and those of a dial; fdsReserve is for everything else:
// rooms' sockets, queries, files.
const (
	fdsPerConn = 1 + egress.MaxTries
	fdsReserve = 1024
)

// Bounds of all rooms together.
const (
	maxLarge   = 64  // large heads, 64 KiB each and about four times that while they are parsed
	maxSecure  = 256 // connections to endpoints' hosts, about 64 KiB each for TLS
	maxAsking  = 512 // questions to upstream, a socket each
	maxWaiting = 512 // questions of workers over UDP that wait for an answer; more are answered SERVFAIL
)

// connLimit returns MaxConns, or less if RLIMIT_NOFILE requires it.
func connLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return MaxConns
	}
	fit := (int64(min(l.Cur, 1<<30)) - fdsReserve) / fdsPerConn
	return int(max(16, min(MaxConns, fit)))
}

// Config is the configuration of a guard.
type Config struct {
	// Policy is the initial policy, expanded.
	Policy *firewall.Policy
	// Digest of the policy.
	Digest policy.Digest
	// Lookup returns variables for templates of later policies; nil: none is
	// set.
	Lookup func(string) (string, bool)
	// Control is the path of the control socket; empty: none.
	Control string
	// Sockets is the directory with one socket per room, <room>.sock.
	Sockets string
	// ResolvConf is read where the policy names no resolver.
	ResolvConf string
	// UserUpstreams are those upstreams of the policy that the user named, as
	// [firewall.UserUpstreamsEnv] has them; the others are the repository's.
	UserUpstreams []string
	// Host are addresses of the host that the guard can't see itself.
	Host []netip.Addr
	// Loopback are addresses that lead to the loopback interface of the host.
	Loopback []netip.Addr
	// Out gets READY and the events.
	Out io.Writer

	inherited descriptors
}

// Guard serves rooms.
type Guard struct {
	config   Config
	started  time.Time
	booted   time.Time // wall clock time at clock.Boot's zero
	store    policy.Store
	sink     *events.Sink
	dialer   *egress.Dialer
	resolver *dns.Resolver
	places   *share.Pool // connections
	large    *share.Pool // large heads
	secure   *share.Pool // connections to endpoints' hosts
	asking   *share.Pool // questions to upstream
	waiting  *share.Pool // questions of workers over UDP that wait for those
	rooms    map[string]*room
	roots    atomic.Pointer[x509.CertPool] // nil: endpoints are closed
	leases   *leases.Store

	mu      sync.Mutex // one change at a time, until it is enforced
	live    *live
	changed chan struct{} // wakes ends
	stored  []kept.Deny   // by the rooms
	unread  error         // why what was stored can't be read
	pending bool          // the live denies must be stored as soon as a room can
}

// New returns a guard; it starts nothing.
func New(c Config) (*Guard, error) {
	if c.Lookup == nil {
		c.Lookup = func(string) (string, bool) { return "", false }
	}
	g := &Guard{
		config: c, started: time.Now(), booted: time.Now().Round(0).Add(-clock.Boot()), rooms: map[string]*room{},
		live: (&live{base: c.Policy, digest: c.Digest}).clone(), changed: make(chan struct{}, 1),
	}
	g.restore()
	g.setRoots(c.Policy)
	g.leases = leases.NewStore(leaseTime, lease.LinesOf(g.store.Swap(g.live.effective()).Policy))
	if err := g.dialers(); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.Policy.Rooms {
		if p.Mode != firewall.None {
			names = append(names, p.Room)
		}
	}
	pool := func(places int) *share.Pool { return share.NewPool(places, len(names)) }
	g.places, g.large, g.secure, g.asking, g.waiting = pool(connLimit()), pool(maxLarge), pool(maxSecure), pool(maxAsking), pool(maxWaiting)
	for _, name := range names {
		g.rooms[name] = newRoom(g, name)
	}
	return g, nil
}

// dialers makes the two diallers. Resolvers of the policy never change; those of
// resolv.conf do with it.
func (g *Guard) dialers() error {
	servers, err := resolvers(g.config.Policy.Resolvers, g.config.ResolvConf)
	if err != nil {
		return err
	}
	local := &egress.Local{Host: g.config.Host, Loopback: g.config.Loopback}
	upstream := egress.NewUpstream(local)
	current := func() []netip.AddrPort { return servers }
	if len(g.config.Policy.Resolvers) == 0 {
		f, err := openResolvFile(g.config.ResolvConf)
		if err != nil {
			return err
		}
		upstream.Replace(servers, f.servers)
		f.changed, current = upstream.Replace, f.current
	} else {
		for _, a := range servers {
			if err := upstream.Add(a, g.trust(a.String())); err != nil {
				return fmt.Errorf("resolver %w", err)
			}
		}
	}
	g.resolver = dns.NewResolver(current, upstream.Dial)
	g.dialer = &egress.Dialer{Local: local, Upstream: upstream}
	if url := g.config.Policy.Proxy; url != "" {
		p, err := firewall.ParseProxy(url)
		if err != nil {
			return err
		}
		if g.dialer.Proxy, err = egress.NewProxy(upstream, url, g.trust(p.String())); err != nil {
			return err
		}
		if g.config.Policy.ProxyCredential != "" {
			g.dialer.Proxy.Lease = g.proxyLease()
		}
	}
	return nil
}

// trust reports who named an upstream of the policy.
func (g *Guard) trust(upstream string) egress.Trust {
	if slices.Contains(g.config.UserUpstreams, upstream) {
		return egress.OfUser
	}
	return egress.OfFile
}

// findProxy resolves the upstream proxy if it is given by name. A failure doesn't
// stop the start (B29): connections fail until the name resolves.
func (g *Guard) findProxy(ctx context.Context) {
	p := g.dialer.Proxy
	if p == nil || p.Fixed() {
		return
	}
	name, err := firewall.ParseName(p.Host)
	if err != nil {
		return
	}
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		for _, t := range []dns.Type{dns.A, dns.AAAA} {
			if a, err := g.resolver.Lookup(ctx, nil, name, t); err == nil && len(a.Addrs) > 0 {
				if p.Fix(a.Addrs[0]) == nil {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Run serves all rooms until ctx ends. It writes what its container is (package made) and
// READY once every room has been served.
func (g *Guard) Run(ctx context.Context) error {
	out := &lockedWriter{w: g.config.Out}
	g.sink = events.NewSink(out, func(room string) []string { return g.store.Room(room).Workers })
	defer g.sink.Close()
	for _, c := range g.live.changes {
		g.noteLive(c, "goes on")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	if g.config.Control != "" {
		l, err := control.Listen(g.config.Control)
		if err != nil {
			return err
		}
		wg.Go(func() { g.controlServer().Accept(ctx, l) })
	}
	if fd := g.config.inherited.control; fd > 0 {
		sock, err := control.Inherited(fd)
		if err != nil {
			return err
		}
		wg.Go(func() { g.controlServer().Take(ctx, sock) })
	}
	if err := g.config.inherited.complete(g.config.Policy.Publish); err != nil {
		return err
	}
	for _, p := range g.config.Policy.Publish {
		r := g.rooms[p.Room]
		if r == nil {
			return fmt.Errorf("port %d is published for room %q, which has no network", p.Listen, p.Room)
		}
		l, err := g.config.inherited.inboundOr(p.Listen, listenInbound)
		if err != nil {
			return fmt.Errorf("published port %d: %w", p.Target, err)
		}
		if err := buffers.Listener(l); err != nil {
			return fmt.Errorf("published port %d: %w", p.Target, err)
		}
		wg.Go(func() { r.publish(ctx, l, p) })
	}
	for _, r := range g.rooms {
		wg.Go(func() { r.run(ctx) })
	}
	wg.Go(func() { g.reap(ctx) })
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-panics.TooMany():
			// The engine restarts the guard, whatever is still waiting here.
			time.AfterFunc(exitTime, func() { os.Exit(1) })
			cancel()
		}
	})
	wg.Go(func() { g.ends(ctx) })
	wg.Go(func() { g.findProxy(ctx) })
	for _, r := range g.rooms {
		select {
		case <-r.served:
		case <-ctx.Done():
			return panics.Err()
		}
	}
	if _, err := io.WriteString(out, made.Line(made.Mountinfo())+"READY\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return panics.Err()
}

// exitTime is how long a guard that panicked too often may take to end.
const exitTime = 2 * time.Second

func (g *Guard) controlServer() *control.Server {
	s := control.NewServer(g.Do)
	s.Panicked = func() { g.sink.Add(events.Panicked(events.Guard)) }
	s.Attach = func(c net.Conn) { g.leases.Serve(c, g.cutRevoked) }
	return s
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
