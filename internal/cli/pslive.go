package cli

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/control"
)

// live is what ps knows of a running guard.
type live struct {
	state  *control.State
	silent bool // it runs and doesn't answer
}

// addLive puts into the entries what the guard says: live changes, learning. A
// guard that doesn't run isn't waited for.
func addLive(entries []psEntry, guard app.Asked) live {
	at := slices.IndexFunc(entries, func(p psEntry) bool { return p.Role == "guard" && p.State == "running" })
	if guard == nil || at < 0 {
		return live{}
	}
	s := <-guard
	if s == nil {
		return live{silent: true}
	}
	entries[at].LiveChanges, entries[at].Upstreams = len(s.Live), s.Upstreams
	learning, closed := app.LearningOf(*s), app.ClosedRooms(*s)
	for i := range entries {
		entries[i].Closed = closed[entries[i].Service]
		if until, ok := learning[entries[i].Service]; ok {
			until = until.UTC()
			entries[i].LearningUntil = &until
			for _, p := range learnNotHeld {
				if !slices.Contains(entries[i].NotHeld, p) {
					entries[i].NotHeld = append(entries[i].NotHeld, p)
				}
			}
		}
	}
	return live{state: s}
}

// psLive says what the guard has beside the file.
func (a *program) psLive(l live) {
	switch {
	case l.silent:
		a.say("the guard doesn't answer within %v: live changes and learning aren't known; `workshop up` stops a guard that hangs", app.AskTime)
	case l.state == nil:
	default:
		a.SayClosed(*l.state)
		for _, u := range l.state.Upstreams {
			a.say("%s", upstreamText(u))
		}
		if n := l.state.Panics; n > 0 {
			a.warn("the guard recovered from %s: %s", app.Count(int(n), "internal error"), a.commands("`workshop firewall log`"))
		}
		if len(l.state.Learning) > 0 {
			a.say("%s", app.LearningText(*l.state))
		}
		if n := len(l.state.Live); n > 0 {
			a.say("%s: %s", app.Count(n, "live change"), a.commands("`workshop firewall show`"))
		}
		if slices.ContainsFunc(l.state.Rooms, func(r control.RoomState) bool { return r.Kind == "anyip" }) {
			a.say("the rooms are made by AnyIP, as this kernel lacks nf_tables: denials are counted without the uid")
		}
	}
}

// upstreamText says what goes through an upstream.
func upstreamText(u control.Upstream) string {
	if u.Kind == "proxy" {
		return "upstream proxy: every connection goes through " + app.Printable(u.Address)
	}
	return "upstream resolver: names are looked up at " + app.Printable(u.Address)
}

// networkColumn is the mode, and that the worker learns or its room is closed.
func networkColumn(p psEntry) string {
	if p.Closed != "" {
		return p.Network + ", closed"
	}
	if p.LearningUntil != nil {
		return fmt.Sprintf("%s, learning until %s", p.Network, app.WhenText(*p.LearningUntil))
	}
	return p.Network
}
