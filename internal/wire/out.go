package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Bounds of what waits to be written. A message holds a slot from before it is
// encoded until it is written, so a peer that doesn't read costs at most
// this many encoded messages and buffers of data, whatever wants to be sent.
const (
	messageSlots = 8
	dataBuffers  = 4
	// maxRefusals are answers that no handler made (busy). A peer that sends
	// calls, is refused, and doesn't even read that, is cut off.
	maxRefusals = 256
)

// What is to be done when a frame was written.
const (
	frameControl = iota // nothing: credit, cancel
	frameMessage        // its slot is free again
	frameData           // its buffer is free again
	frameRefusal        // counted
)

// The ways of a request, for [LostError.Sent].
const (
	reqQueued = iota
	reqBegun  // some of it may have been written
	reqUnsent // it certainly wasn't written as a whole
)

type frame struct {
	b    []byte
	kind uint8
	msg  *message      // of frameMessage
	req  *atomic.Int32 // of a request: its way
}

// outbox is what waits to be written to the connection. One goroutine writes
// it: messages and credit first, then data, one frame at a time, so that a
// stream holds up a message by one frame at most. Answers of calls with streams
// stand behind their data.
type outbox struct {
	slots chan struct{}
	free  chan []byte

	mu       sync.Mutex
	high     fifo
	low      fifo
	refusals int
	closed   bool
	last     []byte // to be written before the end
	wake     chan struct{}
}

func (o *outbox) init() {
	o.slots = make(chan struct{}, messageSlots)
	o.free = make(chan []byte, dataBuffers)
	for range dataBuffers {
		o.free <- nil
	}
	o.wake = make(chan struct{}, 1)
}

// fifo is a queue of frames.
type fifo struct {
	f    []frame
	head int
}

func (q *fifo) push(f frame) { q.f = append(q.f, f) }

func (q *fifo) empty() bool { return q.head == len(q.f) }

func (q *fifo) pop() frame {
	f := q.f[q.head]
	q.f[q.head] = frame{}
	if q.head++; q.head == len(q.f) {
		q.f, q.head = q.f[:0], 0
		if cap(q.f) > 1024 {
			q.f = nil
		}
	} else if q.head >= 64 && q.head*2 >= len(q.f) {
		n := copy(q.f, q.f[q.head:])
		clear(q.f[n:])
		q.f, q.head = q.f[:n], 0
	}
	return f
}

func (o *outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// push queues a frame; false where nothing is sent any more.
func (o *outbox) push(f frame, low bool) bool {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return false
	}
	if low {
		o.low.push(f)
	} else {
		o.high.push(f)
	}
	o.mu.Unlock()
	o.wakeUp()
	return true
}

// refuse queues an answer that no handler made; false where too many wait.
func (o *outbox) refuse(b []byte) bool {
	o.mu.Lock()
	if o.refusals++; o.refusals > maxRefusals {
		o.mu.Unlock()
		return false
	}
	if !o.closed {
		o.high.push(frame{b: b, kind: frameRefusal})
	}
	o.mu.Unlock()
	o.wakeUp()
	return true
}

// take withdraws a request that nothing was written of.
func (o *outbox) take(req *atomic.Int32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if req.Load() != reqQueued || o.closed {
		return req.Load() != reqBegun
	}
	req.Store(reqUnsent)
	for i := o.high.head; i < len(o.high.f); i++ {
		if f := &o.high.f[i]; f.req == req {
			<-o.slots
			*f = frame{kind: frameControl} // nothing is written for it
			break
		}
	}
	return true
}

// close ends it: what is queued is dropped, last (which may be nil) is written.
func (o *outbox) close(last []byte) {
	o.mu.Lock()
	o.closed = true
	o.last = last
	o.high, o.low = fifo{}, fifo{}
	o.mu.Unlock()
	o.wakeUp()
}

// next gives what is to be written next: several small frames or one large one.
func (o *outbox) next(to []frame) (frames []frame, last []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, o.last, true
	}
	frames = to[:0]
	size := 0
	for _, q := range []*fifo{&o.high, &o.low} {
		for !q.empty() {
			f := &q.f[q.head]
			if size += len(f.b); size > MaxData && len(frames) > 0 {
				return frames, nil, false
			}
			if f.req != nil {
				f.req.Store(reqBegun)
			}
			frames = append(frames, q.pop())
		}
	}
	return frames, nil, false
}

// run writes until the end. It returns the error of a write, nil after close.
func (o *outbox) run(w io.Writer) error {
	var frames []frame
	var batch []byte
	for {
		var last []byte
		var closed bool
		frames, last, closed = o.next(frames)
		if closed {
			if last != nil {
				_, _ = w.Write(last)
			}
			return nil
		}
		if len(frames) == 0 {
			<-o.wake
			continue
		}
		b := frames[0].b
		if len(frames) > 1 {
			batch = batch[:0]
			for _, f := range frames {
				batch = append(batch, f.b...)
			}
			b = batch
		}
		var n int
		var err error
		if len(b) > 0 {
			n, err = w.Write(b)
			if err == nil && n < len(b) {
				err = io.ErrShortWrite
			}
		}
		for i, f := range frames {
			if n -= len(f.b); err != nil && n < 0 && f.req != nil {
				f.req.Store(reqUnsent)
			}
			o.written(f)
			frames[i] = frame{}
		}
		if err != nil {
			return err
		}
	}
}

func (o *outbox) written(f frame) {
	switch f.kind {
	case frameMessage:
		f.msg.free()
		<-o.slots
	case frameData:
		o.free <- f.b[:0]
	case frameRefusal:
		o.mu.Lock()
		o.refusals--
		o.mu.Unlock()
	}
}

// message is one that is being written, with room for its frame's header.
type message struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var messages = sync.Pool{New: func() any {
	m := new(message)
	m.enc = json.NewEncoder(&m.buf)
	m.enc.SetEscapeHTML(false)
	return m
}}

func newMessage() *message {
	m := messages.Get().(*message)
	m.buf.Reset()
	m.buf.WriteString("\x00\x00\x00\x00\x00")
	m.buf.WriteString(`{"jsonrpc":"2.0"`)
	return m
}

// free gives it back; large ones are the collector's.
func (m *message) free() {
	if m.buf.Cap() <= 1<<20 {
		messages.Put(m)
	}
}

// value adds a key and its value.
func (m *message) value(key string, v any) error {
	m.buf.WriteString(key)
	if raw, ok := v.(json.RawMessage); ok && raw == nil {
		v = nil
	}
	if err := m.enc.Encode(v); err != nil {
		return err
	}
	m.buf.Truncate(m.buf.Len() - 1) // the encoder's newline
	return nil
}

// refused tells why the other side wouldn't take the message.
func (m *message) refused() error {
	b := m.buf.Bytes()[headerSize:]
	switch {
	case len(b)+64 > MaxMessage:
		return fmt.Errorf("it is larger than %d bytes", MaxMessage)
	case tooDeep(b):
		return fmt.Errorf("it is nested deeper than %d", MaxDepth)
	}
	return nil
}

// frame completes the message.
func (m *message) frame() []byte {
	b := m.buf.Bytes()
	b[0] = kindMessage
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-headerSize))
	return b
}
