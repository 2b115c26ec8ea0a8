package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sync"
)

// Bounds of notifications about a call: their size, and how many wait to be
// taken.
const (
	MaxNotification = 16 << 10
	maxNotes        = 16
)

// Notification is a message without an answer.
type Notification struct {
	Method string
	Params json.RawMessage
}

// call is what both sides of a call have in common: its streams and
// notifications.
type call struct {
	l  *link
	id uint32

	mu    sync.Mutex
	over  bool
	cause error // for reads, after the end; nil: io.EOF
	in    [3]*inflow
	out   [3]*outflow
	notes chan Notification

	owner interface{ lost(error) } // is told when the connection has ended
}

func (c *call) reader(stream byte) *inflow {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.in[stream]
	if f == nil {
		f = newInflow(c.l, c.id, stream)
		if c.over {
			f.end(c.cause)
		}
		c.in[stream] = f
	}
	return f
}

func (c *call) writer(stream byte) *outflow {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.out[stream]
	if f == nil {
		f = newOutflow(c.l, c.id, stream)
		if c.over {
			f.end(c.why())
		}
		c.out[stream] = f
	}
	return f
}

func (c *call) why() error {
	if c.cause != nil {
		return c.cause
	}
	return ErrCallEnded
}

// end ends the streams and notifications. cause is what readers get after what
// has come, nil the regular end. Only the first end counts.
func (c *call) end(cause error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over, c.cause = true, cause
	if c.notes != nil {
		close(c.notes)
	}
	in, out := c.in, c.out
	c.mu.Unlock()

	late := int64(0)
	for i, f := range in {
		switch {
		case f != nil:
			late += int64(f.end(cause))
		case c.l.receives(byte(i)):
			late += Window + 1
		}
	}
	c.l.mu.Lock()
	c.l.late += late
	c.l.mu.Unlock()
	for _, f := range out {
		if f != nil {
			f.end(c.why())
		}
	}
}

// settle waits until what the streams of an ended call were written is queued,
// and nothing more can be. It reports whether there are any.
func (c *call) settle() (wrote bool) {
	c.mu.Lock()
	out := c.out
	c.mu.Unlock()
	for _, f := range out {
		if f != nil {
			f.write.Lock()
			wrote = true // a Write that was under way has ended
			f.write.Unlock()
		}
	}
	return wrote
}

// stream is one of a call, as its user sees it.
type stream struct {
	in  *inflow
	out *outflow
	n   byte
}

func (c *call) stream(n byte) io.ReadWriteCloser {
	switch {
	case n > Stderr:
		panic(fmt.Sprintf("wire: a call has no stream %d", n))
	case c.l.receives(n):
		return &stream{in: c.reader(n), n: n}
	}
	return &stream{out: c.writer(n), n: n}
}

func (s *stream) Read(p []byte) (int, error) {
	if s.in == nil {
		return 0, fmt.Errorf("stream %d is written on this side, not read", s.n)
	}
	return s.in.read(p)
}

func (s *stream) Write(p []byte) (int, error) {
	if s.out == nil {
		return 0, fmt.Errorf("stream %d is read on this side, not written", s.n)
	}
	return s.out.Write(p)
}

func (s *stream) Close() error {
	if s.in != nil {
		s.in.close()
	} else {
		s.out.close()
	}
	return nil
}

func (c *call) notified() <-chan Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notesLocked()
}

func (c *call) notesLocked() chan Notification {
	if c.notes == nil {
		c.notes = make(chan Notification, maxNotes)
		if c.over {
			close(c.notes)
		}
	}
	return c.notes
}

// deliver hands over a notification; the oldest goes where nobody takes them.
func (c *call) deliver(n Notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	notes := c.notesLocked()
	for {
		select {
		case notes <- n:
			return
		default:
		}
		select {
		case <-notes:
		default:
		}
	}
}

// notify sends a notification about the call.
func (c *call) notify(ctx context.Context, method string, params map[string]any) error {
	params = maps.Clone(params)
	if params == nil {
		params = map[string]any{}
	}
	params["id"] = c.id
	select {
	case c.l.out.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.l.done:
		return c.l.Err()
	}
	m, err := newNotification(method, params)
	if err != nil {
		<-c.l.out.slots
		return err
	}
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		<-c.l.out.slots
		return c.why()
	}
	c.l.out.push(frame{b: m.frame(), kind: frameMessage, id: c.id, msg: m}, false)
	c.mu.Unlock()
	c.l.out.kick()
	return nil
}

func newNotification(method string, params any) (*message, error) {
	if !isMethod(method) {
		return nil, fmt.Errorf("%.80q can't be the name of a notification", method)
	}
	m := newMessage()
	m.method(method)
	start := m.buf.Len()
	if err := m.value(`,"params":`, params); err != nil {
		return nil, err
	}
	if n := m.buf.Len() - start; n > MaxNotification {
		return nil, fmt.Errorf("a notification of %d bytes is larger than %d", n, MaxNotification)
	}
	if tooDeep(m.buf.Bytes()[headerSize:]) {
		return nil, fmt.Errorf("a notification is nested deeper than %d", MaxDepth)
	}
	m.buf.WriteByte('}')
	return m, nil
}

// notification takes one from the other side: about a call that is under way,
// or not at all.
func (l *link) notification(e *envelope) (id uint32, c *call, err error) {
	if len(e.params) > MaxNotification {
		return 0, nil, faultf(CodeInvalidRequest, "a notification of %d bytes is larger than %d", len(e.params), MaxNotification)
	}
	id, f := callOf(e.params)
	if f != nil {
		return 0, nil, f
	}
	if id == 0 {
		return 0, nil, nil
	}
	c, err = l.find(id)
	return id, c, err
}
