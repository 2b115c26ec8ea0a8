package leases

import (
	"maps"
	"net"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// sendTimeout is how long a broker may take to read a message.
const sendTimeout = 30 * time.Second

// attached is what the broker is to be told. Its fields are protected by the store's lock.
type attached struct {
	lines   bool
	refused map[string]uint64 // generations by credential
	asks    []any             // *lease.Ask and *lease.AskEnded
	ready   chan struct{}
}

func (a *attached) wake() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// Serve speaks with a broker until its connection ends: what it leased then lasts as long as
// it does. revoked is called after a credential was revoked. There is one broker at a time;
// Serve returns at once while there is another.
func (s *Store) Serve(c net.Conn, revoked func()) {
	a := s.attach()
	if a == nil {
		return
	}
	defer s.detach(a)
	done := make(chan struct{})
	defer close(done)
	panics.Go(func() { s.tell(a, c, done) }, func() { c.Close() })
	r := lease.NewReader(c)
	defer r.Close()
	for {
		m, err := r.FromBroker()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *lease.Lease:
			s.Put(m)
		case *lease.Revoke:
			s.Revoke(m.Credential)
			revoked()
		case *lease.Answer:
			s.answered(m)
		}
	}
}

func (s *Store) attach() *attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broker != nil {
		return nil
	}
	a := &attached{lines: true, refused: map[string]uint64{}, ready: make(chan struct{}, 1)}
	a.wake()
	s.broker = a
	return a
}

func (s *Store) detach(a *attached) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker = nil
	s.endAsks(ErrNoLease, func(lease.Line) bool { return true })
}

// tell writes what the broker is to be told until done is closed.
func (s *Store) tell(a *attached, c net.Conn, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-a.ready:
		}
		for _, m := range s.news(a) {
			_ = c.SetWriteDeadline(time.Now().Add(sendTimeout))
			if lease.Write(c, m) != nil {
				c.Close()
				return
			}
		}
	}
}

// news returns what the broker wasn't told yet.
func (s *Store) news(a *attached) (out []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.lines {
		out = append(out, &lease.Lines{Lines: s.lines})
	}
	for _, c := range slices.Sorted(maps.Keys(a.refused)) {
		out = append(out, &lease.Refused{Credential: c, Generation: a.refused[c]})
	}
	out = append(out, a.asks...)
	a.lines, a.asks = false, nil
	clear(a.refused)
	return out
}
