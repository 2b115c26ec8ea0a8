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

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Options say where a relay accepts connections. Every IPv4 address is one of the machine's
// own, so that the local address of a connection is what the worker dialled.
type Options struct {
	// Dial connects to the outlet, and is called again when the connection ended.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Ports are where it accepts besides those that the outlet tells; 53 by UDP too.
	Ports []uint16
	// Log takes one line about a port that can't be opened; nil: nobody.
	Log func(string)
}

// dialAgain is the pause before the next try to reach the outlet.
const dialAgain = 100 * time.Millisecond

// patience bounds the dialling of a worker's port and the answer to a query.
const patience = 10 * time.Second

// Relay accepts and carries until [Relay.Close].
type Relay struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{} // one for each connection or query
	all    sync.WaitGroup

	mu        sync.Mutex
	cond      sync.Cond // of mu: carrier changed
	carrier   *mux.Mux  // nil: there is none now
	listeners map[uint16]net.Listener
}

// New opens the ports of the options. Ports that the outlet tells are opened, and closed,
// later.
func New(o Options) (*Relay, error) {
	r := &Relay{o: o, slots: make(chan struct{}, carrier.MaxStreams), listeners: map[uint16]net.Listener{}}
	r.cond.L = &r.mu
	r.ctx, r.cancel = context.WithCancel(context.Background())
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
	r.all.Go(r.connect)
	return r, nil
}

// Close ends the relay with all that it carries.
func (r *Relay) Close() {
	r.cancel()
	r.mu.Lock()
	for _, l := range r.listeners {
		l.Close()
	}
	if r.carrier != nil {
		r.carrier.End(nil)
	}
	r.cond.Broadcast()
	r.mu.Unlock()
	r.all.Wait()
}

// connect keeps a carrier: what it carried ends with it, and what is dialled until the next
// one waits.
func (r *Relay) connect() {
	for r.ctx.Err() == nil {
		conn, err := r.o.Dial(r.ctx)
		if err == nil {
			m := mux.New(conn, mux.Config{Odd: true, Streams: carrier.MaxStreams, Accept: accept, Serve: r.inbound, Message: r.message})
			r.set(m)
			_ = m.Run()
			r.set(nil)
		}
		select {
		case <-time.After(dialAgain):
		case <-r.ctx.Done():
		}
	}
}

func (r *Relay) set(m *mux.Mux) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carrier = m
	if m != nil && r.ctx.Err() != nil {
		m.End(nil)
	}
	r.cond.Broadcast()
}

// current waits for a carrier that hasn't ended; nil: the relay ends.
func (r *Relay) current() *mux.Mux {
	r.mu.Lock()
	defer r.mu.Unlock()
	for (r.carrier == nil || isEnded(r.carrier)) && r.ctx.Err() == nil {
		r.cond.Wait() // connect sets the next one, or none, after the end of one
	}
	if r.ctx.Err() != nil {
		return nil
	}
	return r.carrier
}

func isEnded(m *mux.Mux) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// open opens a stream on the carrier, or on the next one if it ends meanwhile; nil: there
// is no place, or the relay ends.
func (r *Relay) open(h carrier.Head) *mux.Stream {
	for {
		m := r.current()
		if m == nil {
			return nil
		}
		s, err := m.Open(h.Encode())
		if err == nil || !isEnded(m) {
			return s
		}
	}
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
			time.Sleep(dialAgain)
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
	to := c.LocalAddr().(*net.TCPAddr).AddrPort()
	carrier.Carry(r.open(carrier.Head{Kind: carrier.TCP, Address: netip.AddrPortFrom(to.Addr().Unmap(), to.Port())}), c, r.size())
}

// size bounds one more connection: the first ones get plenty.
func (r *Relay) size() buffers.Size { return buffers.For(len(r.slots), carrier.MaxStreams) }

// accept of a head: only what an outlet opens.
func accept(head []byte) error {
	_, err := carrier.DecodeOf(head, carrier.Inbound)
	return err
}

// inbound carries a connection to a port of the worker's.
func (r *Relay) inbound(s *mux.Stream) {
	h, err := carrier.Decode(s.Head())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for _, address := range []string{"127.0.0.1", "::1"} {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(h.Port))))
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
