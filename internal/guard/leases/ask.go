package leases

import (
	"errors"
	"time"

	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// What [Store.Ask] returns where a push may not be sent.
var (
	ErrNo         = errors.New("a person said no")
	ErrNobody     = errors.New("nobody can be asked")
	ErrUnanswered = errors.New("nobody answered")
	ErrAsking     = errors.New("the room asks already, or has just got no yes")
	ErrNoLease    = errors.New("the credential isn't leased any more")
	ErrUnaskable  = errors.New("the push can't be asked about")
)

var errOf = map[lease.Decided]error{lease.Yes: nil, lease.No: ErrNo, lease.Nobody: ErrNobody, lease.Unanswered: ErrUnanswered}

// quietLeases is how long a room that got no yes may not ask again, in times that leases
// last: a worker that pushes again and again must not flood the person (B60).
const quietLeases = 2

// aliveEvery is how often it is looked whether who waits for an answer is still there.
const aliveEvery = time.Second

// question waits for its answer, of which it gets one.
type question struct {
	line   lease.Line
	id     uint64
	answer chan error
}

// Ask has a person asked about a push with the credential of a line, and waits for the
// answer while alive returns true. Only nil is a yes. A room has one question at a time.
func (s *Store) Ask(l lease.Line, repository string, refs []lease.Pushed, alive func() bool) error {
	q, err := s.ask(&lease.Ask{Line: l, Repository: repository, Refs: refs})
	if err != nil {
		return err
	}
	late, look := time.NewTimer(lease.AskTime), time.NewTicker(aliveEvery)
	defer late.Stop()
	defer look.Stop()
	for {
		select {
		case err := <-q.answer:
			return err
		case <-late.C:
			return s.giveUp(q)
		case <-look.C:
			if !alive() {
				return s.giveUp(q)
			}
		}
	}
}

func (s *Store) ask(m *lease.Ask) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.ID = s.asked + 1
	switch {
	case s.broker == nil || !s.known[m.Line]:
		return nil, ErrNoLease
	case m.Check() != nil:
		return nil, ErrUnaskable
	case s.asks[m.Room] != nil || clock.Boot() < s.quiet[m.Room]:
		return nil, ErrAsking
	}
	s.asked++
	q := &question{m.Line, m.ID, make(chan error, 1)}
	s.asks[m.Room] = q
	s.broker.asks = append(s.broker.asks, m)
	s.broker.wake()
	return q, nil
}

// end ends a question, unless it was ended before. It is called with s.mu held.
func (s *Store) end(q *question, err error) {
	if s.asks[q.line.Room] != q {
		return
	}
	delete(s.asks, q.line.Room)
	if err == ErrNo || err == ErrUnanswered {
		s.quiet[q.line.Room] = clock.Boot() + quietLeases*s.lasting
	}
	q.answer <- err
}

// endAsks ends the questions about some lines, and says so to the broker. It is called with
// s.mu held.
func (s *Store) endAsks(err error, of func(lease.Line) bool) {
	for _, q := range s.asks {
		if !of(q.line) {
			continue
		}
		s.end(q, err)
		if s.broker != nil {
			s.broker.asks = append(s.broker.asks, &lease.AskEnded{ID: q.id})
			s.broker.wake()
		}
	}
}

// giveUp ends a question for which nobody waits any more.
func (s *Store) giveUp(q *question) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks[q.line.Room] == q {
		s.endAsks(ErrUnanswered, func(l lease.Line) bool { return l.Room == q.line.Room })
	}
	return ErrUnanswered
}

// answered takes the broker's answer to the question that it is for.
func (s *Store) answered(m *lease.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asks {
		if q.id == m.ID {
			s.end(q, errOf[m.Answer])
		}
	}
}
