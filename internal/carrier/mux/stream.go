package mux

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// ErrReset is the error of a stream that one side reset, or whose connection ended.
var ErrReset = errors.New("the stream was reset")

// Stream is a stream in both directions. One goroutine may read, another one write and end
// the writing; any may reset it.
type Stream struct {
	m    *Mux
	id   uint32
	head []byte

	mu   sync.Mutex
	cond sync.Cond // of mu: something below changed
	dead bool      // reset, or its connection ended
	over chan struct{}

	in     []byte // what arrived and wasn't read
	room   int    // how much more the peer may send
	owed   int    // how much was read that the peer doesn't know of
	inEnd  bool   // the peer's fin
	credit int    // how much more this side may send
	outEnd bool   // this side sends no more
	finOut bool   // and the peer was told so

	sink, source *Stream // where data goes to, and its credit comes from ([Pass]); nil: here
}

func newStream(m *Mux, id uint32, head []byte) *Stream {
	s := &Stream{m: m, id: id, head: head, room: Window, credit: Window, over: make(chan struct{})}
	s.cond.L = &s.mu
	return s
}

// Head is what it was opened with.
func (s *Stream) Head() []byte { return s.head }

// Gone is closed when the stream is reset by either side, or its connection ends.
func (s *Stream) Gone() <-chan struct{} { return s.over }

// Read reads what the peer sent; io.EOF after its end of data, ErrReset at once after a
// reset, whatever arrived before.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	for !s.dead && len(s.in) == 0 && !s.inEnd {
		s.cond.Wait()
	}
	if s.dead || len(s.in) == 0 {
		defer s.mu.Unlock()
		if s.dead {
			return 0, ErrReset
		}
		return 0, io.EOF
	}
	n := copy(p, s.in)
	if s.in = s.in[n:]; len(s.in) == 0 {
		s.in = nil
	}
	s.owed += n
	var give int
	if s.owed >= Window/2 && !s.inEnd {
		give, s.owed = s.owed, 0
		s.room += give
	}
	s.mu.Unlock()
	if give > 0 {
		return n, s.m.write(credit, s.id, creditOf(give))
	}
	return n, nil
}

// creditOf is the payload of a credit.
func creditOf(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// Write sends all of p, as the peer gives credit.
func (s *Stream) Write(p []byte) (n int, err error) {
	for n < len(p) {
		s.mu.Lock()
		for !s.dead && s.credit == 0 && !s.outEnd {
			s.cond.Wait()
		}
		if s.dead || s.outEnd {
			defer s.mu.Unlock()
			if s.dead {
				return n, ErrReset
			}
			return n, io.ErrClosedPipe
		}
		k := min(len(p)-n, s.credit, MaxData)
		s.credit -= k
		s.mu.Unlock()
		if err := s.m.write(data, s.id, p[n:n+k]); err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// CloseWrite ends what this side sends; the peer reads io.EOF after it.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	if s.dead || s.outEnd {
		s.mu.Unlock()
		return nil
	}
	s.outEnd = true
	s.cond.Broadcast()
	over := s.inEnd
	s.mu.Unlock()
	if over && !s.m.ours(s.id) {
		s.m.remove(s)
	}
	err := s.m.write(fin, s.id, nil)
	s.mu.Lock()
	s.finOut = true
	over = s.inEnd
	s.cond.Broadcast()
	s.mu.Unlock()
	if over {
		s.m.remove(s)
	}
	return err
}

// Reset ends the stream in both directions: what wasn't read is lost on both sides.
func (s *Stream) Reset() error {
	s.mu.Lock()
	dead, over := s.dead, s.inEnd && s.finOut
	s.die()
	s.mu.Unlock()
	if dead || over {
		return nil
	}
	if !s.m.ours(s.id) {
		s.m.remove(s)
	}
	err := s.m.write(reset, s.id, nil)
	s.m.remove(s)
	return err
}

// Close resets the stream unless both sides ended their data.
func (s *Stream) Close() error { return s.Reset() }

// kill ends it without a word to the peer.
func (s *Stream) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.die()
}

// die is kill for who holds the lock.
func (s *Stream) die() {
	if !s.dead {
		s.dead, s.in = true, nil
		close(s.over)
		s.cond.Broadcast()
	}
}

// arrived takes data of the peer.
func (s *Stream) arrived(p []byte) error {
	sink, err := s.keep(p)
	if sink != nil {
		sink.send(p)
	}
	return err
}

// keep keeps data of the peer, unless it goes elsewhere.
func (s *Stream) keep(p []byte) (sink *Stream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead:
		return nil, nil
	case s.inEnd:
		return nil, breach("data after the end of stream %d", s.id)
	case len(p) > s.room:
		return nil, breach("data beyond the credit of stream %d", s.id)
	}
	if s.room -= len(p); s.sink != nil {
		return s.sink, nil
	}
	s.in = append(s.in, p...)
	s.cond.Broadcast()
	return nil, nil
}

// credited takes credit of the peer.
func (s *Stream) credited(n uint32) error {
	source, err := s.addCredit(n)
	if source != nil {
		source.give(int(n))
	}
	return err
}

// addCredit adds credit of the peer, and returns whose it is besides.
func (s *Stream) addCredit(n uint32) (source *Stream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, nil
	}
	if n == 0 || n > uint32(Window-s.credit) {
		return nil, breach("a credit of %d bytes for stream %d, which has %d", n, s.id, s.credit)
	}
	s.credit += int(n)
	s.cond.Broadcast()
	return s.source, nil
}

// finished takes the peer's end of data. A stream that is over by it is forgotten before its
// reader hears of it, so that the reader can open another one at once.
func (s *Stream) finished() error {
	over := func() bool { return s.finOut || s.outEnd && !s.m.ours(s.id) }
	s.mu.Lock()
	twice, now := s.inEnd, over()
	s.mu.Unlock()
	if twice {
		return breach("two ends of stream %d", s.id)
	}
	if now {
		s.m.remove(s)
	}
	s.mu.Lock()
	s.inEnd = true
	now = over()
	sink := s.sink
	s.cond.Broadcast()
	s.mu.Unlock()
	if now { // since
		s.m.remove(s)
	}
	if sink != nil {
		_ = sink.CloseWrite()
	}
	return nil
}

// gone takes the peer's reset.
func (s *Stream) gone() {
	s.kill()
	s.m.remove(s)
}
