package wire

import (
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
	// maxRefusals are answers that no handler made (busy). From a peer that
	// doesn't even read these, no more calls are read.
	maxRefusals = 256
)

// What is to be done when a frame was written.
const (
	frameControl = iota // nothing
	frameMessage        // its slot is free again
	frameData           // its buffer is free again
	frameRefusal        // the same
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
	id   uint32        // the call, of a client's frames
	msg  *message      // of frameMessage
	req  *atomic.Int32 // of a request: its way
}

// outbox is what waits to be written to the connection: messages and credit
// first, then data, one frame at a time, so that a stream holds up a message by
// one frame at most. Responses of calls with streams follow their data.
//
// Who has queued a frame writes as much as is taken at once (see try), which
// saves a change of goroutines. One goroutine writes the rest: nobody else ever
// waits for the other side in a write, which couldn't be given up.
type outbox struct {
	slots    chan struct{}
	refusals chan struct{}
	free     chan []byte

	mu     sync.Mutex
	high   fifo
	low    fifo
	closed bool
	last   []byte // to be written before the end
	// busy: somebody writes; what follows is his.
	busy   bool
	frames []frame // that are being written
	rest   []byte  // of them
	err    error   // of writing them
	batch  []byte

	wake chan struct{} // tells the writing goroutine to look
	// try writes what is taken at once; nil where that can't be done.
	try func([]byte) (int, error)
}

func (o *outbox) init(w io.Writer) {
	o.try = tryWriter(w)
	o.slots = make(chan struct{}, messageSlots)
	o.refusals = make(chan struct{}, maxRefusals)
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

// push queues a frame; false where nothing is sent any more. kick must follow.
func (o *outbox) push(f frame, low bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if low {
		o.low.push(f)
	} else {
		o.high.push(f)
	}
	return true
}

// withdraw takes a request back that nothing was written of, with what is
// queued after it for the same call. It reports whether nothing was written.
func (o *outbox) withdraw(id uint32, req *atomic.Int32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if req.Load() != reqQueued || o.closed {
		return req.Load() != reqBegun
	}
	req.Store(reqUnsent)
	for _, q := range []*fifo{&o.high, &o.low} {
		for i := q.head; i < len(q.f); i++ {
			if f := &q.f[i]; f.id == id {
				o.release(f)
				*f = frame{} // nothing is written for it
			}
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

func (o *outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// next takes what is to be written next: several small frames or one large
// one; nil where there is nothing. Called with mu, and when nobody is busy.
func (o *outbox) next() []byte {
	o.frames = o.frames[:0]
	size := 0
gather:
	for _, q := range []*fifo{&o.high, &o.low} {
		for !q.empty() {
			f := &q.f[q.head]
			if size += len(f.b); size > MaxData && len(o.frames) > 0 {
				break gather
			}
			if f.req != nil {
				f.req.Store(reqBegun)
			}
			o.frames = append(o.frames, q.pop())
		}
	}
	switch len(o.frames) {
	case 0:
		return nil
	case 1:
		return o.frames[0].b
	}
	o.batch = o.batch[:0]
	for _, f := range o.frames {
		o.batch = append(o.batch, f.b...)
	}
	return o.batch
}

// kick has written what push queued, now or soon.
func (o *outbox) kick() {
	if o.try == nil {
		o.wakeUp()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Not for ever: others may queue as fast as this one writes.
	for range 4 {
		if o.busy || o.closed {
			return // who is busy looks again
		}
		b := o.next()
		if len(o.frames) == 0 {
			return
		}
		o.busy = true
		o.mu.Unlock()
		n, err := o.try(b)
		o.mu.Lock()
		if n < len(b) || err != nil {
			o.rest, o.err = b[n:], err
			o.wakeUp() // and busy remains
			return
		}
		o.written(0)
		if o.closed {
			break
		}
	}
	o.wakeUp()
}

// run writes what is left, until the end. It returns the error of a write, nil
// after close.
func (o *outbox) run(w io.Writer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		b := o.rest
		switch {
		case o.busy && b == nil, !o.busy && !o.closed && o.high.empty() && o.low.empty():
			o.mu.Unlock()
			<-o.wake
			o.mu.Lock()
			continue
		case o.busy:
		case o.closed:
			o.busy = true
			if last := o.last; last != nil {
				o.mu.Unlock()
				_, _ = w.Write(last)
				o.mu.Lock()
			}
			return nil
		default:
			o.busy = true
			b = o.next()
		}
		err := o.err
		n := 0
		if err == nil && len(b) > 0 {
			o.mu.Unlock()
			n, err = w.Write(b)
			o.mu.Lock()
			if err == nil && n < len(b) {
				err = io.ErrShortWrite
			}
		}
		o.written(len(b) - n)
		if err != nil {
			o.closed = true // nothing may follow a part of a frame
			return err
		}
	}
}

// written is the end of writing frames, except for the last bytes of them.
func (o *outbox) written(except int) {
	for i := len(o.frames) - 1; i >= 0; i-- {
		f := &o.frames[i]
		if except > 0 && f.req != nil {
			f.req.Store(reqUnsent)
		}
		except -= len(f.b)
		o.release(f)
		*f = frame{}
	}
	o.busy, o.rest = false, nil
}

// release gives back what a frame held.
func (o *outbox) release(f *frame) {
	switch f.kind {
	case frameMessage:
		f.msg.free()
		<-o.slots
	case frameData:
		o.free <- f.b[:0]
	case frameRefusal:
		<-o.refusals
	}
}
