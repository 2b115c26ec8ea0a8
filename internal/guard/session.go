package guard

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/nflog"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/proxy"
	"github.com/llmdo/workshop/internal/guard/share"
	"github.com/llmdo/workshop/internal/room/handover"
)

// session is one run of a room: from the hand-over of its sockets to its end.
type session struct {
	client *handover.Client
	proxy  *proxy.Room
	ports  []firewall.PortRange // that the room was sent; under room.telling
	cancel context.CancelFunc
	// closers close the guard's descriptors of the room.
	closers  []func() error
	refused  []*nflog.Log // what the room's rules refused
	serveTCP func(*net.TCPListener)

	mu        sync.Mutex
	closed    bool
	listeners map[uint16]*net.TCPListener // of the policy's ports, in a room without netfilter
	wg        sync.WaitGroup
}

// open makes listeners of the room's sockets and starts to serve them. On error
// nothing stays open.
func (r *room) open(ctx context.Context, client *handover.Client, f *handover.Sockets) (_ *session, err error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{client: client, cancel: cancel}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.proxy = &proxy.Room{
		Policy: r.policy, Resolver: r.guard.resolver, Pins: &r.pins, Dialer: r.guard.dialer,
		Report: r.report, Flows: &proxy.Flows{},
		Large: r.large, Asking: r.asking,
		Admit: r.wild.Admit, Budgets: &r.budget,
		Roots: r.guard.roots.Load, Secure: r.secure, Lease: r.lease, Ask: r.ask,
	}
	names := &dns.Server{
		Room: r.policy, Resolver: r.guard.resolver, IPv6: r.guard.dialer.Local.IPv6,
		Answer: r.guard.dialer.Answer, Pins: &r.pins, Report: r.report, Admit: r.wild.Admit,
		Asking: r.asking, Waiting: r.waiting, Tried: r.tried.has,
	}
	pc, err := net.FilePacketConn(f.DNSUDP)
	if err != nil {
		return nil, fmt.Errorf("dns socket: %w", err)
	}
	udp, ok := pc.(*net.UDPConn)
	s.closers = append(s.closers, pc.Close)
	if !ok {
		return nil, fmt.Errorf("the dns socket is %T", pc)
	}
	type service struct {
		file   *os.File
		kind   events.Kind
		handle func(*proxy.Room, context.Context, *net.TCPConn)
	}
	services := []service{
		{f.DNSTCP, events.DNS, func(_ *proxy.Room, ctx context.Context, c *net.TCPConn) { names.ServeConn(ctx, c) }},
		{f.HTTP, events.HTTP, (*proxy.Room).HTTP},
		{f.TLS, events.TLS, (*proxy.Room).TLS},
		{f.Proxy, events.Proxy, (*proxy.Room).Explicit},
	}
	if f.Kind == handover.AnyIP {
		s.proxy.Original = proxy.LocalDst
		services[3].handle = func(p *proxy.Room, ctx context.Context, c *net.TCPConn) {
			// The port of the proxy at another address is a port like any other.
			if _, err := proxy.LocalDst(c); err == nil {
				p.TCP(ctx, c)
			} else {
				p.Explicit(ctx, c)
			}
		}
	} else {
		services = append(services, service{f.TCP, events.TCP, (*proxy.Room).TCP})
	}
	served, err := endpoints(client, r.policy().RoomPolicy)
	if err != nil {
		return nil, err
	}
	for _, e := range served {
		s.closers = append(s.closers, e.l.Close)
	}
	listeners := make([]*net.TCPListener, len(services))
	for i, v := range services {
		if listeners[i], err = listener(v.file); err != nil {
			return nil, err
		}
		s.closers = append(s.closers, listeners[i].Close)
	}
	// The listeners are duplicates: the originals would keep the ports open after
	// the session has closed.
	f.DNSUDP.Close()
	for _, v := range services {
		v.file.Close()
	}

	s.wg.Go(func() { names.ServeUDP(ctx, udp) })
	for _, shown := range []struct {
		file *os.File
		open func(syscall.Conn, func(nflog.Packet), func(uint64)) (*nflog.Log, error)
	}{{f.NFLog, nflog.New}, {f.Refused4, nflog.NewRefused}, {f.Refused6, nflog.NewRefused}} {
		if shown.file == nil {
			continue
		}
		s.closers = append(s.closers, shown.file.Close)
		log, err := shown.open(shown.file, r.packet, r.lost)
		if err != nil {
			return nil, fmt.Errorf("socket of refused packets: %w", err)
		}
		s.refused = append(s.refused, log)
		s.wg.Go(func() { r.listen(log.Read) })
	}
	serve := func(l *net.TCPListener, v service) {
		s.wg.Go(func() {
			accept(ctx, l, r.places, func(ctx context.Context, c *net.TCPConn) {
				s.proxy.Hold(c, func() { v.handle(r.proxyOf(s.proxy, c), ctx, c) })
			}, r.panicked(v.kind))
		})
	}
	for i, v := range services {
		serve(listeners[i], v)
	}
	for _, e := range served {
		serve(e.l, service{kind: events.Endpoint, handle: e.handle})
	}
	s.serveTCP = func(l *net.TCPListener) { serve(l, service{kind: events.TCP, handle: (*proxy.Room).TCP}) }
	return s, nil
}

// listener makes a listener of a room's socket; f stays open.
func listener(f *os.File) (*net.TCPListener, error) {
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listener: %w", err)
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("a listener is %T", l)
	}
	return t, buffers.Listener(t)
}

// gone reports whether the room or its connection has ended.
func (s *session) gone() bool {
	select {
	case <-s.client.Done():
		return true
	default:
		return false
	}
}

// close closes the listeners, so that nothing more is accepted through the guard's
// duplicates, and the connections.
func (s *session) close() {
	s.cancel()
	for _, f := range s.closers {
		_ = f()
	}
	s.mu.Lock()
	s.closed = true
	for _, l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.wg.Wait() // a listener is closed when the last Accept has returned
	if s.proxy != nil {
		s.proxy.Flows.Close()
	}
}

// listen calls read, which reads a room's netlink socket until it is closed. A
// panic over one packet doesn't stop the next.
func (r *room) listen(read func()) {
	for !panics.Serve(read, r.panicked(events.Kernel)) {
	}
}

// panicked returns a function that reports a panic while serving the room.
func (r *room) panicked(kind events.Kind) func() {
	return func() { r.report(events.Panicked(kind)) }
}

// accept passes each connection to handle on its own goroutine, as places become
// free, with the buffers of the place. It returns when the listener is closed. A
// connection whose handler panics is reset, and panicked is called.
func accept(ctx context.Context, l *net.TCPListener, places *share.Room, handle func(context.Context, *net.TCPConn), panicked func()) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if ctx.Err() != nil || !again(err) {
				return
			}
			// Out of descriptors or memory: further connections stay in the backlog.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		place, ok := places.Take(ctx)
		if !ok {
			c.Close()
			return
		}
		panics.Go(func() {
			defer place.Free()
			size := buffers.For(place.Nth, place.Of)
			if size.Accepted(c) == nil { // else the client is gone
				handle(buffers.With(ctx, size), c)
			}
			c.Close()
		}, func() {
			proxy.Reset(c)
			panicked()
		})
	}
}

// packet reports a packet that the room's rules refused.
func (r *room) packet(p nflog.Packet) {
	e := events.Event{
		Kind: events.Kernel, Verdict: events.Deny, Address: p.Dst.String(), Port: p.Port, Protocol: p.Protocol,
		Explained: r.tried.has(p.Src),
	}
	if names := r.pins.Names(p.Dst); len(names) > 0 {
		e.Name = names[0].String()
	}
	e.Reason, e.Suggest = r.whyRefused(p, e.Name)
	r.report(e)
}

func (r *room) lost(n uint64) {
	e := events.Event{Room: r.name, Kind: events.Kernel, Verdict: events.Deny, Reason: events.ReasonKernelLost}
	r.guard.sink.AddN(e, max(1, n))
}
