package events

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Window is how long equal events are joined: the first one is written at once,
// those that follow within the window are one line at its end.
const Window = time.Second

// maxKeys bounds the different events of one room in one window; what is above
// is counted by kind only (ReasonOverflow).
const maxKeys = 1000

// Sink writes events. Add never blocks and never waits for the writer: a
// stalled reader of the guard's output costs detail, not connections, and never
// the counts.
type Sink struct {
	workers func(room string) []string
	w       io.Writer

	mu      sync.Mutex
	entries map[Event]*entry
	rooms   map[string]int // different events by room
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
}

type entry struct {
	count   uint64 // not written yet
	written time.Time
}

// NewSink starts a sink; workers names the workers of a room.
func NewSink(w io.Writer, workers func(room string) []string) *Sink {
	s := &Sink{
		workers: workers, w: w,
		entries: map[Event]*entry{}, rooms: map[string]int{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Add counts an event once.
func (s *Sink) Add(e Event) { s.AddN(e, 1) }

// AddN counts an event n times.
func (s *Sink) AddN(e Event, n uint64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	x := s.entries[e]
	if x == nil && s.rooms[e.Room] >= maxKeys {
		e = Event{Room: e.Room, Kind: e.Kind, Verdict: e.Verdict, Reason: ReasonOverflow}
		x = s.entries[e]
	}
	if x == nil {
		x = &entry{}
		s.entries[e] = x
		s.rooms[e.Room]++
	}
	x.count += n
	first := x.written.IsZero()
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Close writes what is pending and ends the sink.
func (s *Sink) Close() {
	close(s.stop)
	<-s.done
}

func (s *Sink) run() {
	defer close(s.done)
	for {
		var tick <-chan time.Time
		s.mu.Lock()
		if len(s.entries) > 0 {
			tick = time.After(Window / 4)
		}
		s.mu.Unlock()
		select {
		case <-s.stop:
			s.flush(time.Now(), true)
			return
		case <-s.wake:
		case <-tick:
		}
		s.flush(time.Now(), false)
	}
}

// flush writes what is due: new events at once, repeated ones once per window.
func (s *Sink) flush(now time.Time, all bool) {
	type due struct {
		Event
		count uint64
	}
	var out []due
	s.mu.Lock()
	for e, x := range s.entries {
		old := now.Sub(x.written) >= Window
		switch {
		case x.count > 0 && (old || all):
			out = append(out, due{e, x.count})
			x.count, x.written = 0, now
		case x.count == 0 && old:
			delete(s.entries, e)
			if s.rooms[e.Room]--; s.rooms[e.Room] == 0 {
				delete(s.rooms, e.Room)
			}
		}
	}
	s.mu.Unlock()
	for _, d := range out {
		l := Line{
			Time: now.UTC(), Room: d.Room, Kind: d.Kind, Name: d.Name, Address: d.Address,
			Port: d.Port, Protocol: d.Protocol, Verdict: d.Verdict, Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest, Count: d.count,
		}
		if d.Room != "" {
			l.Workers = s.workers(d.Room)
		}
		if d.Verdict == Deny {
			l.Why = firewall.Why(d.Reason)
		}
		b, err := json.Marshal(l)
		if err != nil {
			continue // no field can cause this
		}
		_, _ = s.w.Write(append(b, '\n'))
	}
}
