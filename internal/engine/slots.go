package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// slots bounds the number of concurrent steps. Waiting steps are admitted in order
// of their IDs. One slot is kept free for the reserved step: the guard takes longest
// to start, so it must not wait.
type slots struct {
	mu       sync.Mutex
	free     int
	reserved int // step ID, 0: none
	waiting  []waiter
}

type waiter struct {
	id   int
	turn chan struct{}
}

// get waits for a slot; ok is false if ctx ended first.
func (s *slots) get(ctx context.Context, id int) (release func(), ok bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	w := waiter{id: id, turn: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	sortfunc.Stable(s.waiting, func(a, b waiter) int { return a.id - b.id })
	s.serve()
	s.mu.Unlock()
	select {
	case <-w.turn:
		return s.put, true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.turn: // it was admitted concurrently
		s.free++
		s.serve()
	default:
		s.waiting = slices.DeleteFunc(s.waiting, func(o waiter) bool { return o.id == id })
	}
	return nil, false
}

func (s *slots) put() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.serve()
}

// serve admits waiting steps to free slots. The lock is held.
func (s *slots) serve() {
	for s.free > 0 && len(s.waiting) > 0 {
		i := 0
		if s.reserved != 0 {
			if at := slices.IndexFunc(s.waiting, func(w waiter) bool { return w.id == s.reserved }); at >= 0 {
				i, s.reserved = at, 0
			} else if s.free == 1 {
				return
			}
		}
		s.free--
		close(s.waiting[i].turn)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}
