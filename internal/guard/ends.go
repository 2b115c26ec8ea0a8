package guard

import (
	"context"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// clockCheck is how often the clock is looked at while something has an end:
// timers stand still while a machine sleeps, and it goes on.
const clockCheck = time.Second

// over reports whether an end has come, by Guard.now: setting the machine's time
// brings none nearer, and puts none off. An end that is zero never comes.
func over(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

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
	return min(clockCheck, max(time.Millisecond, first.Sub(now)))
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

// end ends what is over now.
func (g *Guard) end(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changes, rooms := g.live.expire(now)
	if len(changes)+len(rooms) == 0 {
		return
	}
	// What is over is left out when it is read, too.
	_ = g.record(g.live)
	_, _ = g.enforce() // a room that can't be told its ports: the guard refuses them
	for _, c := range changes {
		g.noteLive(c, "ended")
	}
	for _, room := range rooms {
		g.noteLearning(room, "ended")
	}
}
