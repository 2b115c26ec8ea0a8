package events

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Window is how long equal events are merged: the first one is written at once,
// those that follow within the window become one line at its end.
const Window = time.Second

// maxKeys bounds the different denials and notes of one room in one window, and
// maxCarried those about allowed connections, so that a busy worker doesn't crowd
// out its denials. Events beyond are counted by kind only (ReasonOverflow).
const (
	maxKeys    = 1000
	maxCarried = 500
)

// maxRecent bounds the different failures of one room that [Sink.Failed] knows: the
// last so many, and up to as many before them.
const maxRecent = 100

// Sink writes events. Add never waits for the writer: a stalled reader of the
// guard's output costs detail, but neither connections nor counts.
type Sink struct {
	workers func(room string) []string
	w       io.Writer

	mu      sync.Mutex
	entries map[Event]*entry
	shares  map[share]int // different events
	dropped uint64
	recent  map[string]*recent // by room
	wake    chan struct{}
	now     chan chan struct{} // flushes everything, then closes the received channel
	stop    chan struct{}
	done    chan struct{}
}

type entry struct {
	count, up, down uint64    // not written yet
	last            time.Time // of the last one added
	written         time.Time
}

// recent has when different failures of a room were added last.
type recent struct{ last, before map[Event]time.Time }

func (r *recent) add(e Event, now time.Time) {
	if r.last == nil || len(r.last) == maxRecent {
		r.last, r.before = map[Event]time.Time{}, r.last
	}
	r.last[e] = now
}

// share is the key of what is bounded together.
type share struct {
	room    string
	carried bool
}

func shareOf(e Event) share { return share{e.Room, e.Verdict == Allow || e.Verdict == End} }

func (h share) max() int {
	if h.carried {
		return maxCarried
	}
	return maxKeys
}

// joined reports whether the event counts others that aren't written.
func (e Event) joined() bool { return e.Reason == ReasonOverflow || e.Reason == ReasonKernelLost }

// NewSink starts a sink; workers names the workers of a room.
func NewSink(w io.Writer, workers func(room string) []string) *Sink {
	s := &Sink{
		workers: workers, w: w,
		entries: map[Event]*entry{}, shares: map[share]int{}, recent: map[string]*recent{},
		wake: make(chan struct{}, 1), now: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
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
	up, down := e.BytesUp, e.BytesDown
	e.BytesUp, e.BytesDown = 0, 0
	h := shareOf(e)
	s.mu.Lock()
	now := time.Now()
	if e.Failed() {
		if s.recent[e.Room] == nil {
			s.recent[e.Room] = &recent{}
		}
		s.recent[e.Room].add(e, now)
	}
	x := s.entries[e]
	if x == nil && s.shares[h] >= h.max() {
		e = Event{Room: e.Room, Kind: e.Kind, Verdict: e.Verdict, Reason: ReasonOverflow}
		x = s.entries[e]
	}
	if x == nil {
		x = &entry{}
		s.entries[e] = x
		s.shares[h]++
	}
	if e.joined() {
		s.dropped += n
	}
	x.count += n
	x.last = now
	x.up += up
	x.down += down
	first := x.written.IsZero()
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Failed returns the last failures of a room ([Event.Failed]) that were added at a time
// or later, each once with its last time, in order of time, whether they are written
// or not. They are without workers and counts.
func (s *Sink) Failed(room string, since time.Time) (list []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recent[room]
	if r == nil {
		return nil
	}
	for e, t := range r.before {
		if _, again := r.last[e]; !again && !t.Before(since) {
			list = append(list, e.line(t))
		}
	}
	for e, t := range r.last {
		if !t.Before(since) {
			list = append(list, e.line(t))
		}
	}
	sortfunc.Stable(list, func(x, y Line) int { return x.Time.Compare(y.Time) })
	return list
}

// line is the event as a line.
func (e Event) line(t time.Time) Line {
	l := Line{
		Time: t.UTC(), Room: e.Room, Kind: e.Kind, Name: e.Name, Address: e.Address,
		Port: e.Port, Protocol: e.Protocol, Verdict: e.Verdict, Reason: e.Reason, Rule: e.Rule, Suggest: e.Suggest, Why: e.Why, Explained: e.Explained,
		BytesUp: e.BytesUp, BytesDown: e.BytesDown,
	}
	if e.Verdict == Deny {
		l.Why = firewall.Why(e.Reason, e.Name, e.Rule)
	}
	return l
}

// Dropped returns how many events were counted but not written in full: too many
// different ones, those that the kernel couldn't report, and those that the writer
// refused.
func (s *Sink) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Flush writes what is pending without waiting for the end of its window. It
// returns once it is written, or ctx ends: the writer may have stalled.
func (s *Sink) Flush(ctx context.Context) {
	written := make(chan struct{})
	select {
	case s.now <- written:
	case <-ctx.Done():
		return
	case <-s.done:
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
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
		case written := <-s.now:
			s.flush(time.Now(), true)
			close(written)
			continue
		case <-s.wake:
		case <-tick:
		}
		s.flush(time.Now(), false)
	}
}

// flush writes the due events: new ones at once, repeated ones once per window.
func (s *Sink) flush(now time.Time, all bool) {
	type due struct {
		Event
		count uint64
		last  time.Time
	}
	var out []due
	s.mu.Lock()
	for e, x := range s.entries {
		old := now.Sub(x.written) >= Window
		switch {
		case x.count > 0 && (old || all):
			d := due{e, x.count, x.last}
			d.BytesUp, d.BytesDown = x.up, x.down
			out = append(out, d)
			*x = entry{written: now}
		case x.count == 0 && old:
			delete(s.entries, e)
			h := shareOf(e)
			if s.shares[h]--; s.shares[h] == 0 {
				delete(s.shares, h)
			}
		}
	}
	s.mu.Unlock()
	for _, d := range out {
		l := d.line(d.last)
		l.Count = d.count
		if d.Room != "" {
			l.Workers = s.workers(d.Room)
		}
		b, err := json.Marshal(l)
		if err != nil {
			continue // no field can cause this
		}
		if _, err := s.w.Write(append(b, '\n')); err != nil && !d.joined() {
			s.mu.Lock()
			s.dropped += d.count
			s.mu.Unlock()
		}
	}
}
