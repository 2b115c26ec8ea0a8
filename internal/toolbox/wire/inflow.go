package wire

import (
	"bufio"
	"io"
	"sync"
)

// giveBack is how much is consumed before credit for it is sent.
const giveBack = Window / 4

// inflow is the receiving end of a stream: a ring of at most Window bytes,
// which is what the other side has credit for.
type inflow struct {
	l      *link
	id     uint32
	stream byte

	mu     sync.Mutex
	change sync.Cond
	ring   []byte
	head   int
	count  int
	allow  int // bytes that the other side may still send
	owed   int // consumed, credit not yet sent
	eos    bool
	over   bool  // the call has ended
	cause  error // what a reader gets then, after the bytes; nil: io.EOF
	closed bool  // nobody reads
}

func newInflow(l *link, id uint32, stream byte) *inflow {
	f := &inflow{l: l, id: id, stream: stream, allow: Window}
	f.change.L = &f.mu
	return f
}

// receive takes one data frame's n bytes from the connection; false where the
// call has ended by then.
func (f *inflow) receive(br *bufio.Reader, n int) (bool, error) {
	f.mu.Lock()
	switch {
	case f.over:
		f.mu.Unlock()
		return false, nil
	case f.eos:
		f.mu.Unlock()
		return true, faultf(CodeInvalidRequest, "data came on stream %d of call %d after its end", f.stream, f.id)
	case n > f.allow:
		f.mu.Unlock()
		return true, faultf(CodeInvalidRequest, "%d bytes came on stream %d of call %d, which has credit for %d", n, f.stream, f.id, f.allow)
	case n == 0:
		f.eos = true
		f.change.Broadcast()
		f.mu.Unlock()
		return true, nil
	}
	f.allow -= n
	if f.closed {
		f.mu.Unlock()
		if _, err := br.Discard(n); err != nil {
			return true, inside(err)
		}
		f.mu.Lock()
		f.consumed(n)
		return true, nil
	}
	a, b := f.room(n)
	f.mu.Unlock()
	// Only this goroutine adds, so nobody else touches the room.
	if _, err := io.ReadFull(br, a); err != nil {
		return true, inside(err)
	}
	if _, err := io.ReadFull(br, b); err != nil {
		return true, inside(err)
	}
	f.mu.Lock()
	if f.closed {
		f.consumed(n)
		return true, nil
	}
	f.count += n
	f.change.Signal()
	f.mu.Unlock()
	return true, nil
}

// room returns the two parts of the ring after what it holds, n bytes long. The
// credit keeps the sum within Window.
func (f *inflow) room(n int) (a, b []byte) {
	if need := f.count + n; need > len(f.ring) {
		size := max(2*len(f.ring), 4<<10)
		for size < need {
			size *= 2
		}
		ring := make([]byte, size)
		f.copyOut(ring[:f.count])
		f.ring, f.head = ring, 0
	}
	tail := (f.head + f.count) & (len(f.ring) - 1)
	if end := tail + n; end <= len(f.ring) {
		return f.ring[tail:end], nil
	}
	return f.ring[tail:], f.ring[:n-(len(f.ring)-tail)]
}

func (f *inflow) copyOut(p []byte) int {
	if f.count == 0 {
		return 0
	}
	n := copy(p[:min(len(p), f.count)], f.ring[f.head:])
	return n + copy(p[n:min(len(p), f.count)], f.ring)
}

// consumed unlocks, and gives credit back in large parts.
func (f *inflow) consumed(n int) {
	f.owed += n
	more := 0
	if f.owed >= giveBack && !f.over && !f.eos {
		more, f.owed = f.owed, 0
		f.allow += more
	}
	f.mu.Unlock()
	if more > 0 {
		f.l.out.push(frame{b: creditFrame(f.id, f.stream, more)}, false)
		f.l.out.kick()
	}
}

func (f *inflow) read(p []byte) (int, error) {
	f.mu.Lock()
	for f.count == 0 && len(p) > 0 && !f.eos && !f.over && !f.closed {
		f.change.Wait()
	}
	switch {
	case f.closed:
		f.mu.Unlock()
		return 0, io.ErrClosedPipe
	case len(p) == 0:
		f.mu.Unlock()
		return 0, nil
	case f.count == 0:
		defer f.mu.Unlock()
		if f.eos || f.cause == nil {
			return 0, io.EOF
		}
		return 0, f.cause
	}
	n := f.copyOut(p)
	f.head = (f.head + n) & (len(f.ring) - 1)
	if f.count -= n; f.count == 0 && f.eos {
		f.ring = nil
	}
	f.consumed(n)
	return n, nil
}

// close: nobody reads any more. A client lets the rest come and go, or a call
// whose output isn't wanted would never end. A server doesn't: what it was sent
// would be carried for nothing, so its client waits until the call ends.
func (f *inflow) close() {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.closed = true
	n := f.count
	f.count = 0
	f.change.Broadcast()
	if f.l.server {
		n = 0
	}
	f.consumed(n)
}

// end is the end of the call. It returns what may still come.
func (f *inflow) end(cause error) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return 0
	}
	f.over, f.cause = true, cause
	f.change.Broadcast()
	if f.eos {
		return 0
	}
	return f.allow + 1
}
