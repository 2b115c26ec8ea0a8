package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Flow is one carried connection, with the question it was allowed for.
type Flow struct {
	in, out *net.TCPConn
	// allowed reports whether a policy still allows the flow.
	allowed func(*policy.Room) bool
	// revoked: it was reset, and will end.
	revoked bool
}

// Flows holds the connections of one room. The zero value is ready for use.
type Flows struct {
	mu     sync.Mutex
	open   map[*Flow]struct{}
	closed bool
}

// Add registers a flow; it returns nil, and closes the connections, when the
// room is closed already.
func (f *Flows) Add(in, out *net.TCPConn, allowed func(*policy.Room) bool) *Flow {
	x := &Flow{in: in, out: out, allowed: allowed}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		x.reset()
		return nil
	}
	if f.open == nil {
		f.open = map[*Flow]struct{}{}
	}
	f.open[x] = struct{}{}
	return x
}

// end removes a flow, and resets it unless it ended in order.
func (f *Flows) end(x *Flow, inOrder bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !inOrder {
		x.reset()
	}
	delete(f.open, x)
}

// set changes the upstream side of a flow together with the state that its allowed
// function reads. A flow of a closed room is reset.
func (f *Flows) set(x *Flow, out *net.TCPConn, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.out = out
	change()
	if f.closed {
		x.reset()
	}
}

// Carried returns the number of carried connections.
func (f *Flows) Carried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for x := range f.open {
		if x.out != nil {
			n++
		}
	}
	return n
}

// Close resets every connection, and every later one.
func (f *Flows) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for x := range f.open {
		x.reset()
	}
}

// Revoke resets the connections that a new policy doesn't allow (B27) and returns
// their number, each counted once.
func (f *Flows) Revoke(p *policy.Room) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for x := range f.open {
		if x.allowed(p) {
			continue
		}
		x.reset()
		if !x.revoked {
			x.revoked = true
			n++
		}
	}
	return n
}

// Idle timeouts: maxHalfClosed if the client has closed its side, as the kernel
// does for a program that has ended.
const (
	maxIdle       = 2 * time.Hour
	maxHalfClosed = 2 * time.Minute
)

// Reap resets flows without traffic for maxIdle. The kernel has the time of the
// last traffic (TCP_INFO, tcp(7)), so bytes needn't pass through the guard.
func (f *Flows) Reap() { f.reap(maxIdle, maxHalfClosed) }

func (f *Flows) reap(maxIdle, maxHalfClosed time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for x := range f.open {
		quiet, open := idle(x.in)
		if x.out != nil {
			out, _ := idle(x.out)
			quiet = min(quiet, out)
		}
		if quiet > maxIdle || !open && quiet > maxHalfClosed {
			x.reset()
		}
	}
}

// idle returns how long a connection has been without traffic either way, and
// whether its peer may still send.
func idle(c *net.TCPConn) (quiet time.Duration, open bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, true
	}
	open = true
	_ = raw.Control(func(fd uintptr) {
		if ti, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			quiet = time.Duration(min(ti.Last_data_recv, ti.Last_data_sent)) * time.Millisecond
			open = ti.State == unix.BPF_TCP_ESTABLISHED
		}
	})
	return quiet, open
}

func (x *Flow) reset() {
	Reset(x.in)
	if x.out != nil {
		Reset(x.out)
	}
}

// Reset closes a connection with RST, so that the worker's program fails at once
// instead of reading EOF.
func Reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// splice carries bytes both ways until both sides have ended or one fails, and
// ends the way. Without a budget both ends are bare TCP connections, so that
// io.Copy uses splice(2).
func (r *Room) splice(in *net.TCPConn, w *way) { r.spliceAfter(in, w, func() error { return nil }) }

// spliceAfter is splice; begin sends what was already read. A change of the policy
// is either seen here, or finds the flow (B27).
func (r *Room) spliceAfter(in *net.TCPConn, w *way, begin func() error) {
	defer w.end()
	f := r.Flows.Add(in, w.conn, w.still)
	if f == nil {
		return
	}
	inOrder := false
	defer func() { r.Flows.end(f, inOrder) }()
	if !w.still(r.Policy()) { // it changed since the decision
		return
	}
	if err := begin(); err != nil {
		w.reset()
		Reset(in)
		inOrder = true
		return
	}
	up := make(chan error, 1)
	go func() {
		err := panics.Try(w.carryUp)
		w.pass(w.conn, err)
		up <- err
	}()
	w.pass(in, w.carryDown())
	panics.Again(<-up)
	inOrder = true
}

// carryUp carries what the client sends.
func (w *way) carryUp() error {
	if w.budget != nil || !w.size.Splice {
		return w.size.Carry(w, w.in)
	}
	n, err := io.Copy(w.conn, w.in)
	w.up.Add(uint64(n))
	return err
}

// carryDown carries what the upstream sends.
func (w *way) carryDown() error {
	if !w.size.Splice {
		return w.size.Carry(countedTo{w.size.Writer(w.in), &w.down}, w.conn)
	}
	n, err := io.Copy(w.in, w.conn)
	w.down.Add(uint64(n))
	return err
}

// countedTo counts written bytes.
type countedTo struct {
	io.Writer
	n *atomic.Uint64
}

func (c countedTo) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(uint64(n))
	return n, err
}

// pass passes the end of a direction on to dst: EOF as EOF, anything else as a
// reset of both sides.
func (w *way) pass(dst *net.TCPConn, err error) {
	if err == nil {
		err = dst.CloseWrite()
		if errors.Is(err, unix.ENOTCONN) {
			err = nil
		}
	}
	if err != nil {
		w.reset()
		Reset(w.in)
	}
}

// Join carries an inbound connection to out, a connection to an address in the
// room, until either ends. The socket may no longer have a peer.
func (r *Room) Join(ctx context.Context, in, out *net.TCPConn, to netip.AddrPort) {
	w := &way{room: r, in: in, conn: out, size: buffers.Of(ctx)}
	w.event = events.Event{
		Kind: events.Inbound, Verdict: events.Allow, Reason: events.ReasonPublished,
		Address: to.Addr().String(), Port: to.Port(), Protocol: "tcp",
	}
	w.begin()
	r.splice(in, w)
}

// Hold runs f with a connection that ends with the room.
func (r *Room) Hold(c *net.TCPConn, f func()) {
	x := r.Flows.Add(c, nil, func(*policy.Room) bool { return true })
	if x == nil {
		return
	}
	inOrder := false
	defer func() { r.Flows.end(x, inOrder) }()
	f()
	inOrder = true
}
