package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// way is an upstream connection: its client, its destination, and what it carried.
// Read and Write count bytes; a user of conn counts its own.
type way struct {
	room   *Room
	in     *net.TCPConn // the client
	conn   *net.TCPConn
	to     netip.AddrPort // the dialled address
	event  events.Event   // that it was let through
	rule   *firewall.Rule // that allowed it; nil: none did
	budget *budget        // the rule's; nil: no bound
	size   buffers.Size
	tls    *secured // over conn, to the host of an endpoint; nil: none
	// decide decides by another policy; nil: the way always stays allowed.
	decide func(*policy.Room) firewall.Decision
	// revoked reports whether the credential of the upstream proxy was; nil: it has none.
	revoked func() bool

	up, down atomic.Uint64
	writing  sync.Mutex    // of a way with a budget, held while counting and writing
	over     atomic.Bool   // ended by its budget
	drained  chan struct{} // closed when a way that its budget ended is reset
	ended    sync.Once
}

// open dials one of the addresses, which d allowed. The caller ends the way. A
// refused address is reported.
func (r *Room) open(ctx context.Context, a dialRequest, p *policy.Room, d firewall.Decision, addrs []netip.Addr, port uint16) (*way, error) {
	c, err := r.Dialer.Dial(ctx, egress.Want{Matcher: p.Matcher, Decision: d, Addrs: addrs, Port: port, Admit: r.Budgets.Admit})
	if never := new(egress.NeverError); errors.As(err, &never) {
		r.never(a.kind, never, a.name, port)
		return nil, err
	}
	if err != nil {
		note := events.Event{Reason: events.ReasonUnreachable}
		if upstream := new(egress.ProxyError); errors.As(err, &upstream) {
			note = events.Event{Reason: events.ReasonProxy, Why: "allowed, but " + upstream.Error()}
		}
		r.failed(ctx, note, a, d, addrs, port)
		return nil, err
	}
	w := &way{
		room: r, in: a.in, conn: c.TCPConn, to: netip.AddrPortFrom(c.Addr, port),
		decide: a.decide, revoked: c.Revoked, rule: c.Decision.Rule, budget: r.Budgets.of(c.Decision.Rule), size: buffers.Of(ctx),
	}
	if w.budget != nil {
		w.drained = make(chan struct{})
	}
	w.event = events.Event{
		Kind: a.kind, Verdict: events.Allow, Reason: c.Decision.Reason, Name: a.name,
		Address: c.Addr.String(), Port: port, Protocol: "tcp", Suggest: c.Decision.Suggest,
	}
	if w.rule != nil {
		w.event.Rule = w.rule.Line
	}
	w.begin()
	return w, nil
}

// mayDial decides about an address as open does, without dialling it.
func (r *Room) mayDial(p *policy.Room, x route) firewall.Decision {
	d := r.Dialer.Check(p.Matcher, x.Decision, x.to.addr, x.to.port)
	if d.Allowed {
		d = r.Budgets.Admit(d)
	}
	return d
}

// begin reports the way.
func (w *way) begin() {
	w.room.Report(w.event)
	if w.budget != nil {
		w.budget.add(w)
	}
}

// end closes the way and reports what it carried.
func (w *way) end() {
	w.ended.Do(func() {
		if w.tls != nil {
			defer w.tls.place.Free()
		}
		if !w.over.Load() {
			w.conn.Close()
		}
		if w.budget != nil {
			w.budget.remove(w)
		}
		e := w.event
		e.Verdict, e.BytesUp, e.BytesDown = events.End, w.up.Load(), w.down.Load()
		if e.Kind == events.Inbound {
			e.BytesUp, e.BytesDown = e.BytesDown, e.BytesUp // the worker is conn's peer
		}
		w.room.Report(e)
		if w.over.Load() {
			<-w.drained // until then it counts as a connection
		}
	})
}

// still reports whether a policy still allows the way: the destination, the
// address, no budget that isn't counted here, and no credential that was revoked.
func (w *way) still(p *policy.Room) bool {
	if w.revoked != nil && w.revoked() {
		return false
	}
	if w.decide == nil {
		return true
	}
	d := w.decide(p)
	if !d.Allowed {
		return false
	}
	d = w.room.Dialer.Check(p.Matcher, d, w.to.Addr(), w.to.Port())
	if !d.Allowed {
		return false
	}
	k := keyOf(d.Rule)
	return k.upload.IsZero() || w.budget != nil && w.budget.key == k
}

// stream is what requests are sent by.
func (w *way) stream() io.ReadWriter {
	if w.tls != nil {
		return w.tls
	}
	return w
}

// toClient is a buffer for a response; [putWriter] takes it back.
func (w *way) toClient() *bufio.Writer {
	if w.tls != nil && w.tls.wide != nil {
		return wideWriters.Get().(*bufio.Writer)
	}
	return writers.Get().(*bufio.Writer)
}

// reader is what responses are read from: before it waits, what is buffered for the client is
// flushed.
func (w *way) reader(toClient *bufio.Writer) io.Reader {
	if w.tls != nil {
		w.tls.from.to = toClient
		return w.tls
	}
	return &flusher{from: w, to: toClient}
}

// Read reads from the upstream.
func (w *way) Read(b []byte) (int, error) {
	n, err := w.conn.Read(b)
	w.down.Add(uint64(n))
	return n, err
}

// Write writes to the upstream as many bytes as the budget has. If those are
// fewer than len(b), every other connection of the budget is reset, and the error
// is errUsedUp.
func (w *way) Write(b []byte) (int, error) {
	if w.budget == nil {
		n, err := w.size.Writer(w.conn).Write(b)
		w.up.Add(uint64(n))
		return n, err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.over.Load() {
		return 0, errUsedUp
	}
	some := b[:w.budget.take(len(b))]
	n, err := w.size.Writer(w.conn).Write(some)
	w.up.Add(uint64(n))
	if err != nil || len(some) == len(b) {
		return n, err
	}
	w.usedUp()
	for _, o := range w.budget.ways() {
		if o != w {
			o.cut()
		}
	}
	return n, errUsedUp
}

// cut resets the client because another connection used the budget up.
func (w *way) cut() {
	if w.usedUp() {
		Reset(w.in)
	}
}

// usedUp reports that the budget ended the way, and resets the upstream once it
// has what was counted. It returns false if that was already done.
func (w *way) usedUp() bool {
	if w.over.Swap(true) {
		return false
	}
	e := w.event
	e.Verdict, e.Reason, e.Suggest = events.Deny, events.ReasonUpload, ""
	w.room.Report(e)
	_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // nobody waits for the upstream
	_ = w.conn.SetWriteDeadline(time.Now().Add(drainTime))
	panics.Go(func() {
		defer close(w.drained)
		w.writing.Lock()
		defer w.writing.Unlock()
		defer Reset(w.conn)
		w.drain()
	}, func() { w.room.Report(events.Panicked(w.event.Kind)) })
	return true
}

// reset resets the upstream, unless the budget does.
func (w *way) reset() {
	if !w.over.Load() {
		Reset(w.conn)
	}
}

// drainTime is how long what was counted may take to leave.
const drainTime = 5 * time.Second

// drain waits until the peer has acknowledged what was written: a reset would
// discard bytes in the kernel that the budget has counted.
func (w *way) drain() {
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return
	}
	for end := time.Now().Add(drainTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := 0
		// SIOCOUTQ: the bytes not acknowledged yet (tcp(7)).
		if raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) != nil || err != nil || left == 0 {
			return
		}
	}
}
