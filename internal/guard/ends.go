package guard

import (
	"context"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// wallCheck is how often the wall clock is looked at while something has an end:
// timers stand still while a machine sleeps.
const wallCheck = time.Second

// over tells whether an end has come: by the wall clock, which goes on while a
// machine sleeps, or by the monotonic one, which nobody sets back. An end that
// is zero never comes.
func over(end, now time.Time) bool {
	return !end.IsZero() && (!now.Before(end) || !now.Round(0).Before(end.Round(0)))
}

// next is how long to wait for the next end; 0: there is none.
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
	return min(wallCheck, max(time.Millisecond, first.Sub(now)))
}

// expire takes out what is over and returns it.
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

// ends ends live changes and learning in time, until ctx ends.
func (g *Guard) ends(ctx context.Context) {
	for {
		g.mu.Lock()
		wait := g.live.next(time.Now())
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
		g.end(time.Now())
	}
}

// end ends what is over now.
func (g *Guard) end(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changes, rooms := g.live.expire(now)
	if len(changes)+len(rooms) == 0 {
		return
	}
	_, _ = g.enforce() // a room that can't be told its ports: the guard refuses them
	for _, c := range changes {
		g.noteLive(c, "ended")
	}
	for _, room := range rooms {
		g.noteLearning(room, "ended")
	}
}
