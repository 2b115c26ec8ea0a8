package mux

// Pass joins a stream of one connection and one of another, of which nothing was read or
// written: what arrives on one is sent on the other, and the credit that the other's peer
// gives is given to the one's. So nothing of them is kept here, but for what arrived before.
// It returns when both are over, each in the way of the other, and both are closed then.
//
// The reader of one connection writes to the other one meanwhile. Its peer must read
// whatever it has to write itself, as a Mux does, or be one that may wait for ever.
func Pass(a, b *Stream) {
	defer a.Close()
	defer b.Close()
	passed := make(chan struct{})
	defer close(passed)
	go func() {
		select {
		case <-a.Gone():
			_ = b.Reset()
		case <-b.Gone():
			_ = a.Reset()
		case <-passed:
		}
	}()
	b.from(a)
	a.from(b)
	a.handOver(b)
	b.handOver(a)
	a.waitOver()
	b.waitOver()
}

// from has the credit that the peer of s gives given to that of t.
func (s *Stream) from(t *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = t
}

// handOver sends what arrived on s to the peer of t; what arrives later its reader sends.
func (s *Stream) handOver(t *Stream) {
	for {
		s.mu.Lock()
		p := s.in
		if s.in = nil; len(p) == 0 {
			s.sink = t
		}
		end := s.inEnd
		s.mu.Unlock()
		if len(p) == 0 {
			if end {
				_ = t.CloseWrite()
			}
			return
		}
		_, _ = t.Write(p) // there is credit: a window is a window
	}
}

// send sends what the peer of another stream had credit for, which was this one's.
func (s *Stream) send(p []byte) {
	s.mu.Lock()
	if s.dead || s.outEnd || len(p) > s.credit {
		s.mu.Unlock()
		return
	}
	s.credit -= len(p)
	s.mu.Unlock()
	_ = s.m.write(data, s.id, p) // the end of its connection is its reader's to tell
}

// give gives the peer credit.
func (s *Stream) give(n int) {
	s.mu.Lock()
	if s.dead || s.inEnd {
		s.mu.Unlock()
		return
	}
	s.room += n
	s.mu.Unlock()
	_ = s.m.write(credit, s.id, creditOf(n))
}

// waitOver waits until both sides ended their data, or one reset the stream.
func (s *Stream) waitOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.dead && !(s.inEnd && s.finOut) {
		s.cond.Wait()
	}
}
