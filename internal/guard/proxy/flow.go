package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Flow is one connection that is being carried, with what it was allowed for.
type Flow struct {
	in, out *net.TCPConn
	// allowed asks a policy whether it would still allow the flow.
	allowed func(*policy.Room) bool
	// revoked: it was reset, and is only not gone yet.
	revoked bool
}

// Flows are the connections of one room. The zero value is ready for use.
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

// Remove forgets a flow that has ended.
func (f *Flows) Remove(x *Flow) {
	f.mu.Lock()
	delete(f.open, x)
	f.mu.Unlock()
}

// set changes the upstream side of a flow together with what its allowed
// function looks at. A flow of a closed room is reset.
func (f *Flows) set(x *Flow, out *net.TCPConn, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.out = out
	change()
	if f.closed {
		x.reset()
	}
}

// Close resets every connection, at once, and those that come later.
func (f *Flows) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for x := range f.open {
		x.reset()
	}
}

// Revoke resets what a new policy doesn't allow (B27) and returns how many, each
// once.
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

// maxIdle is how long nothing may come from either side.
const maxIdle = 2 * time.Hour

// Reap resets flows without traffic for maxIdle. The kernel knows since when
// (TCP_INFO, tcp(7)), so that no byte passes through the guard for it.
func (f *Flows) Reap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for x := range f.open {
		if idle(x.in) > maxIdle && (x.out == nil || idle(x.out) > maxIdle) {
			x.reset()
		}
	}
}

func idle(c *net.TCPConn) time.Duration {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	var ms uint32
	_ = raw.Control(func(fd uintptr) {
		if ti, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			ms = min(ti.Last_data_recv, ti.Last_data_sent)
		}
	})
	return time.Duration(ms) * time.Millisecond
}

func (x *Flow) reset() {
	Reset(x.in)
	if x.out != nil {
		Reset(x.out)
	}
}

// Reset closes a connection with RST: the worker's program fails at once
// instead of taking the end for the end of the data.
func Reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// splice carries bytes both ways until both sides have ended or one fails, and
// ends the way. Where nothing bounds them, both ends are bare TCP connections, so
// that io.Copy is splice(2).
func (r *Room) splice(in *net.TCPConn, w *way) { r.spliceAfter(in, w, func() error { return nil }) }

// spliceAfter is splice; begin sends what was read already. A change of the policy
// that comes before it is seen, and one that comes later finds the flow (B27).
func (r *Room) spliceAfter(in *net.TCPConn, w *way, begin func() error) {
	defer w.end()
	f := r.Flows.Add(in, w.conn, w.still)
	if f == nil {
		return
	}
	defer r.Flows.Remove(f)
	if !w.still(r.Policy()) { // it changed since the decision
		f.reset()
		return
	}
	if err := begin(); err != nil {
		w.reset()
		Reset(in)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if w.budget != nil {
			w.pass(w.conn, w.carryCounted())
			return
		}
		n, err := io.Copy(w.conn, in)
		w.up.Add(uint64(n))
		w.pass(w.conn, err)
	})
	n, err := io.Copy(in, w.conn)
	w.down.Add(uint64(n))
	w.pass(in, err)
	wg.Wait()
}

// pass passes the end of the direction to dst on: an end as an end, anything else
// as a reset of both sides.
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

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// carryCounted carries what the client sends as far as the budget goes.
func (w *way) carryCounted() error {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{w.in}, *buf)
	return err
}

// Join carries an inbound connection to out, in the room, until either ends.
func (r *Room) Join(in, out *net.TCPConn) {
	to, _ := out.RemoteAddr().(*net.TCPAddr)
	w := &way{room: r, in: in, conn: out}
	w.event = events.Event{
		Kind: events.Inbound, Verdict: events.Allow, Reason: events.ReasonPublished,
		Address: to.IP.String(), Port: uint16(to.Port), Protocol: "tcp",
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
	defer r.Flows.Remove(x)
	f()
}
