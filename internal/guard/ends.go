package guard

import (
	"context"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// clockCheck is the interval of clock checks while a change has an end: timers
// don't advance while a machine sleeps, the clock does.
const clockCheck = time.Second

// over reports whether end has passed at now, which is Guard.now: setting the
// machine's clock doesn't move ends. A zero end never passes.
func over(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// next returns the time until the next end; 0 if there is none.
func (l *live) next(now time.Time) time.Duration {
	var first time.Time
	consider := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for _, c := range l.changes {
		consider(c.Until)
	}
	for _, t := range l.learning {
		consider(t)
	}
	if first.IsZero() {
		return 0
	}
	return min(clockCheck, max(time.Millisecond, first.Sub(now)))
}

// expire removes and returns the changes and the rooms' learning that are over.
func (l *live) expire(now time.Time) (changes []firewall.Live, rooms []string) {
	var kept []firewall.Live
	for _, c := range l.changes {
		if over(c.Until, now) {
			changes = append(changes, c)
		} else {
			kept = append(kept, c)
		}
	}
	l.changes = kept
	for room, end := range l.learning {
		if over(end, now) {
			rooms = append(rooms, room)
			delete(l.learning, room)
		}
	}
	return changes, rooms
}

// ends expires live changes and learning on time, until ctx ends.
func (g *Guard) ends(ctx context.Context) {
	for {
		g.mu.Lock()
		wait := g.live.next(g.now())
		g.mu.Unlock()
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.changed:
			continue
		case <-timer:
		}
		g.end(g.now())
	}
}

// end expires what is over at now.
func (g *Guard) end(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changes, rooms := g.live.expire(now)
	if len(changes)+len(rooms) == 0 {
		return
	}
	// An error is harmless: reading drops expired entries too.
	_ = g.record(g.live)
	_, _ = g.enforce() // a room that can't be sent its ports: the guard refuses them
	for _, c := range changes {
		g.noteLive(c, "ended")
	}
	for _, room := range rooms {
		g.noteLearning(room, "ended")
	}
}
