package guard

import (
	"context"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// note writes an event about the guard itself.
func (g *Guard) note(e events.Event) {
	if g.sink == nil {
		return // not running yet
	}
	e.Kind, e.Verdict = events.Guard, events.Note
	g.sink.Add(e)
}

func (g *Guard) notePolicy(digest string) {
	g.note(events.Event{Reason: events.ReasonPolicy, Rule: "policy " + digest[:min(12, len(digest))]})
}

// noteLive writes an event: a live change began or ended.
func (g *Guard) noteLive(c firewall.Live, what string) {
	verb := "allow "
	if c.Deny {
		verb = "deny "
	}
	g.note(events.Event{
		Room: c.Room, Reason: events.ReasonLive, Name: clip.Bytes(c.Rule.Target(), maxText),
		Rule: c.Rule.Line + ": " + verb + clip.Bytes(target(c.Rule), maxText) + " " + what,
	})
}

func (g *Guard) noteLearning(room, what string) {
	g.note(events.Event{Room: room, Reason: events.ReasonLearning, Rule: "learning " + what})
}

// noteReset returns functions that write what a reset has ended in l.
func (g *Guard) noteReset(l *live) (notes []func()) {
	for _, c := range l.changes {
		notes = append(notes, func() { g.noteLive(c, "ended") })
	}
	for room := range l.learning {
		notes = append(notes, func() { g.noteLearning(room, "ended") })
	}
	return notes
}

// pendingTime bounds the wait for a reader of the guard's output that stalls.
const pendingTime = 200 * time.Millisecond

// tellPending flushes the events that wait to be merged with equal ones, so that
// the log is complete when the state is returned.
func (g *Guard) tellPending(ctx context.Context) {
	if g.sink == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pendingTime)
	defer cancel()
	g.sink.Flush(ctx)
}
