package wire

import (
	"io"
	"sync"
)

// outflow is the sending end of a stream.
type outflow struct {
	l      *link
	id     uint32
	stream byte

	write sync.Mutex // held by one Write, and at the end

	mu     sync.Mutex
	credit int
	closed bool
	cause  error         // the call has ended
	more   chan struct{} // credit came
	stop   chan struct{} // closed at the end of the stream or of the call
}

func newOutflow(l *link, id uint32, stream byte) *outflow {
	return &outflow{l: l, id: id, stream: stream, credit: Window, more: make(chan struct{}, 1), stop: make(chan struct{})}
}

// grant adds credit; false where that is more than a window.
func (f *outflow) grant(n int) bool {
	f.mu.Lock()
	f.credit += n
	ok := f.credit <= Window
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
	return ok
}

func (f *outflow) fail() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.cause != nil:
		return f.cause
	case f.closed:
		return io.ErrClosedPipe
	}
	return nil
}

// take waits for credit, for at most n bytes.
func (f *outflow) take(n int) (int, error) {
	for {
		if err := f.fail(); err != nil {
			return 0, err
		}
		f.mu.Lock()
		n := min(n, f.credit)
		f.credit -= n
		f.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-f.more:
		case <-f.stop:
		}
	}
}

// Write returns when everything is on its way: copied, and within the credit.
func (f *outflow) Write(p []byte) (int, error) {
	f.write.Lock()
	defer f.write.Unlock()
	done := 0
	for done < len(p) {
		n, err := f.take(min(len(p)-done, MaxData))
		if err != nil {
			return done, err
		}
		var b []byte
		select {
		case b = <-f.l.out.free:
		case <-f.stop:
			return done, f.fail()
		case <-f.l.done:
			return done, f.l.Err()
		}
		b = dataFrame(b, f.id, f.stream, p[done:done+n])
		if !f.l.out.push(frame{b: b, kind: frameData, id: f.id}, true) {
			// The connection has ended, or a write of it has failed.
			select {
			case <-f.stop:
			case <-f.l.done:
			}
			if err := f.fail(); err != nil {
				return done, err
			}
			return done, f.l.Err()
		}
		f.l.out.kick()
		done += n
	}
	return done, f.fail()
}

// close ends the stream: the other side reads io.EOF after what was written.
func (f *outflow) close() {
	f.mu.Lock()
	if f.closed || f.cause != nil {
		f.mu.Unlock()
		return
	}
	f.closed = true
	close(f.stop)
	f.mu.Unlock()
	f.write.Lock()
	f.l.out.push(frame{b: dataFrame(nil, f.id, f.stream, nil), id: f.id}, true)
	f.write.Unlock()
	f.l.out.kick()
}

// end is the end of the call: a Write that is under way stops.
func (f *outflow) end(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		f.cause = cause
		if !f.closed {
			close(f.stop)
		}
	}
}
