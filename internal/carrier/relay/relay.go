// Package relay is the inside of a carrier: what a worker with a kernel of its own dials is
// accepted here and carried to the outlet in the worker's room. It runs where the worker
// can reach it: nothing that the outlet or anybody else decides hangs on it.
package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/link"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Ports are where a relay accepts besides the ports of the policy: those that each room
// redirects, and others whose denials are counted.
var Ports = append([]uint16{53, 80, 443, firewall.PortProxy}, firewall.ToldPorts...)

// Options say where a relay accepts connections. Every IPv4 address is one of the machine's
// own, so that the local address of a connection is what the worker dialled.
type Options struct {
	// Dial connects to the outlet, and is called again when the connection ended.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Ready: it says on each connection that this kernel has booted.
	Ready bool
	// Ports are where it accepts besides those that the outlet tells; 53 by UDP too.
	Ports []uint16
	// Session carries a session of the worker's tools, in a goroutine of its own; the stream
	// is closed when it returns. nil: the outlet may open none.
	Session func(*mux.Stream)
	// Log takes one line about a port that can't be opened; nil: nobody.
	Log func(string)
}

// patience bounds the dialling of a worker's port and the answer to a query.
const patience = 10 * time.Second

// Relay accepts and carries until [Relay.Close].
type Relay struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{} // one for each connection or query
	all    sync.WaitGroup

	link      *link.Link
	mu        sync.Mutex
	listeners map[uint16]net.Listener

	servers servers
}

// New opens the ports of the options. Ports that the outlet tells are opened, and closed,
// later.
func New(o Options) (*Relay, error) {
	r := &Relay{o: o, slots: make(chan struct{}, carrier.MaxStreams), listeners: map[uint16]net.Listener{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	l := link.Options{Dial: o.Dial, Mux: mux.Config{Odd: true, Streams: carrier.MaxStreams, Accept: r.opened, Serve: r.serve, Message: r.message}}
	if o.Ready {
		l.Hello = carrier.Head{Kind: carrier.Ready}.Encode()
	}
	r.link = link.New(l)
	var problems []error
	for _, p := range o.Ports {
		problems = append(problems, r.listen(p))
		if p == 53 {
			problems = append(problems, r.dns())
		}
	}
	if err := errors.Join(problems...); err != nil {
		r.Close()
		return nil, err
	}
	r.all.Go(r.link.Run)
	return r, nil
}

// Close ends the relay with all that it carries.
func (r *Relay) Close() {
	r.cancel()
	r.mu.Lock()
	for _, l := range r.listeners {
		l.Close()
	}
	r.mu.Unlock()
	r.link.Close()
	r.all.Wait()
}

// listen opens a port at every address and accepts at it. It is closed with the relay.
func (r *Relay) listen(port uint16) error {
	l, err := net.Listen("tcp4", "0.0.0.0:"+strconv.Itoa(int(port)))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.listeners[port] = l
	r.mu.Unlock()
	r.all.Go(func() { r.accept(l.(*net.TCPListener)) })
	return nil
}

// accept accepts connections; with all slots taken it stops, and the kernel keeps what is
// dialled.
func (r *Relay) accept(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors
			time.Sleep(link.Again)
			continue
		}
		select {
		case r.slots <- struct{}{}:
		case <-r.ctx.Done():
			c.Close()
			return
		}
		r.all.Go(func() {
			defer func() { <-r.slots }()
			r.carry(c)
		})
	}
}

func (r *Relay) carry(c *net.TCPConn) {
	to, from := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	h := carrier.Head{Kind: carrier.TCP, Address: netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), Source: carrier.SourceOf(from.Addr())}
	carrier.Carry(r.link.Open(h.Encode()), c, r.size())
}

// size bounds one more connection: the first ones get plenty.
func (r *Relay) size() buffers.Size { return buffers.For(len(r.slots), carrier.MaxStreams) }

// Send sends a message on the connection, or on the next one if there is none.
func (r *Relay) Send(h carrier.Head) error {
	m := r.link.Current()
	if m == nil {
		return net.ErrClosed
	}
	return m.Send(h.Encode())
}

// opened is called with a head: only what an outlet opens.
func (r *Relay) opened(head []byte) error {
	kinds := []carrier.Kind{carrier.Inbound}
	if r.o.Session != nil {
		kinds = append(kinds, carrier.Session)
	}
	_, err := carrier.DecodeOf(head, kinds...)
	return err
}

func (r *Relay) serve(s *mux.Stream) {
	h, err := carrier.Decode(s.Head())
	switch {
	case err != nil:
	case h.Kind == carrier.Session:
		r.o.Session(s)
	default:
		r.inbound(s, h.Port)
	}
}

// inbound carries a connection to a port of the worker's.
func (r *Relay) inbound(s *mux.Stream, port uint16) {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for _, address := range []string{"127.0.0.1", "::1"} {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
		if err == nil {
			carrier.Join(c.(*net.TCPConn), s, r.size())
			return
		}
	}
}

// message takes the ports of the policy: the relay accepts at exactly these, besides its own.
func (r *Relay) message(text []byte) error {
	h, err := carrier.DecodeOf(text, carrier.Ports)
	if err != nil {
		return err
	}
	want := map[uint16]bool{}
	for _, p := range h.Ports {
		want[p] = true
	}
	for _, p := range r.o.Ports {
		want[p] = true
	}
	r.mu.Lock()
	for p, l := range r.listeners {
		if !want[p] {
			l.Close()
			delete(r.listeners, p)
		}
		delete(want, p)
	}
	r.mu.Unlock()
	for _, p := range h.Ports {
		if !want[p] {
			continue
		}
		if err := r.listen(p); err != nil && r.o.Log != nil {
			r.o.Log(err.Error())
		}
	}
	return nil
}
