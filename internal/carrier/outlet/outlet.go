// Package outlet is the outside of a carrier, in the worker's room: it dials what the relay
// asks for, and the room's rules do what they do with any connection there. It decides
// nothing but which of the room's own loopback ports are for workers. It has no capability
// and reads hostile input.
package outlet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Options say what an outlet carries.
type Options struct {
	// Inbound are ports of the worker: a connection to 127.0.0.1 here is one to it.
	Inbound []uint16
}

// patience bounds a dial and the wait for a response of the room's DNS.
const patience = 10 * time.Second

// dns is where the room's DNS listens, whatever address is asked (network.md).
const dns = 53

// Outlet carries for one relay at a time.
type Outlet struct {
	o    Options
	open atomic.Int32 // connections that are carried

	mu      sync.Mutex
	carrier *mux.Mux // nil: no relay is connected
	ports   []byte   // the message of the last ports; nil: none yet
}

// New returns an outlet without a relay.
func New(o Options) *Outlet { return &Outlet{o: o} }

// errSecond is the end of a relay that isn't served.
var errSecond = errors.New("another relay is connected")

// Serve carries for a relay until the connection ends, and returns why. If another relay is
// connected, it closes the connection at once.
func (o *Outlet) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	m := mux.New(conn, mux.Config{
		Streams: carrier.MaxStreams, Accept: accept, Serve: func(s *mux.Stream) { o.serve(ctx, s) },
	})
	o.mu.Lock()
	if o.carrier != nil {
		o.mu.Unlock()
		conn.Close()
		return errSecond
	}
	o.carrier = m
	ports := o.ports
	o.mu.Unlock()
	defer context.AfterFunc(ctx, func() { m.End(ctx.Err()) })()
	if ports != nil {
		go m.Send(ports) // the relay may not read yet
	}
	err := m.Run()
	o.mu.Lock()
	o.carrier = nil
	o.mu.Unlock()
	return err
}

// SetPorts tells the relay, and the next one, which ports of the policy to accept at: those
// that rise, carrier.MaxPorts at most.
func (o *Outlet) SetPorts(ports []uint16) {
	text := carrier.Head{Kind: carrier.Ports, Ports: ports}.Encode()
	o.mu.Lock()
	o.ports = text
	m := o.carrier
	o.mu.Unlock()
	if m != nil {
		_ = m.Send(text) // its Run says why
	}
}

// accept of a head: only what a relay opens.
func accept(head []byte) error {
	_, err := carrier.DecodeOf(head, carrier.TCP, carrier.DNS)
	return err
}

func (o *Outlet) serve(ctx context.Context, s *mux.Stream) {
	h, err := carrier.Decode(s.Head())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { // nobody waits any more
		select {
		case <-s.Gone():
			cancel()
		case <-ctx.Done():
		}
	}()
	if h.Kind == carrier.DNS {
		query(ctx, s, h.Source)
		return
	}
	if !mayDial(h.Address) {
		return
	}
	c, err := dial(ctx, "tcp", h.Address, h.Source)
	if err != nil {
		return
	}
	cancel()
	o.sized(func(size buffers.Size) { carrier.Join(c.(*net.TCPConn), s, size) })
}

// sized carries a connection, whose size depends on how many there are.
func (o *Outlet) sized(carry func(buffers.Size)) {
	defer o.open.Add(-1)
	carry(buffers.For(int(o.open.Add(1)), 2*carrier.MaxStreams))
}

// mayDial keeps the relay from what else listens at the room's loopback: there it reaches
// the DNS, the guard's proxy and endpoints, each at 127.0.0.1 alone.
func mayDial(to netip.AddrPort) bool {
	if !to.Addr().IsLoopback() && !to.Addr().IsUnspecified() {
		return true
	}
	p := to.Port()
	return to.Addr() == carrier.Loopback && (p == dns || p == firewall.PortProxy || firewall.FirstEndpoint <= p && p <= firewall.LastEndpoint)
}

// dial dials what is IPv4 from an address of the loopback, if it is invalid from 127.0.0.1: a
// room may have other addresses that only a sandbox uses.
func dial(ctx context.Context, network string, to netip.AddrPort, from netip.Addr) (net.Conn, error) {
	var d net.Dialer
	if to.Addr().Is4() {
		if !from.IsValid() {
			from = carrier.Loopback
		}
		local := netip.AddrPortFrom(from, 0)
		if d.LocalAddr = net.TCPAddrFromAddrPort(local); network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(local)
		}
	}
	return d.DialContext(ctx, network, to.String())
}

// query carries one query to the room's DNS and its response back.
func query(ctx context.Context, s *mux.Stream, from netip.Addr) {
	text := carrier.ReadDNS(s)
	if text == nil {
		return
	}
	c, err := dial(ctx, "udp", netip.AddrPortFrom(carrier.Loopback, dns), from)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := c.Write(text); err != nil {
		return
	}
	answer := make([]byte, carrier.MaxDNS)
	n, err := c.Read(answer)
	if err != nil || n == 0 {
		return
	}
	if _, err := s.Write(answer[:n]); err == nil {
		_ = s.CloseWrite()
	}
}

// Listen accepts connections at the inbound ports and carries them to the worker; the
// listeners are closed with ctx. While no relay is connected they are reset.
func (o *Outlet) Listen(ctx context.Context) error {
	for _, port := range o.o.Inbound {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		if err := buffers.Listener(l.(*net.TCPListener)); err != nil {
			return err
		}
		go o.inbound(l.(*net.TCPListener), port)
	}
	return nil
}

func (o *Outlet) inbound(l *net.TCPListener, port uint16) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return
		}
		go func() {
			o.mu.Lock()
			m := o.carrier
			o.mu.Unlock()
			var s *mux.Stream
			if m != nil {
				s, _ = m.Open(carrier.Head{Kind: carrier.Inbound, Port: port}.Encode())
			}
			o.sized(func(size buffers.Size) { carrier.Carry(s, c, size) })
		}()
	}
}
