package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/kept"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/room/handover"
)

// unreadableError means that a room stays closed because its recorded denies and
// budgets can't be read.
type unreadableError struct{ why error }

func (e *unreadableError) Error() string {
	return clip.Bytes("the previous guard's record can't be read: "+e.why.Error(), maxText)
}

// now is the time that ends are compared with: clock.Boot, added to the wall clock
// time of its zero.
func (g *Guard) now() time.Time { return g.booted.Add(clock.Boot()) }

// keep adopts the record that the previous guard left with the room, and stores
// this guard's there. It runs before the room is served. An unreadableError closes
// the room; after any other error the room is retried.
func (r *room) keep(c *handover.Client) error {
	if !r.kept.Opened() {
		f, err := c.Kept()
		if err == nil {
			err = r.guard.adopt(r, f)
		}
		if err != nil {
			select {
			case <-c.Done():
				return err // the room has gone
			default:
				return &unreadableError{err}
			}
		}
	}
	return r.kept.Give(c)
}

// adopt enforces the record of the previous guard in f; a nil f has none. Denies
// for all rooms take effect in all of them at once.
func (g *Guard) adopt(r *room, f *os.File) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, before := g.live.clone(), len(g.live.changes)
	if err := r.kept.Open(f, func(s kept.State) error {
		for _, d := range s.Denies {
			if d.Room != "" && d.Room != r.name {
				return fmt.Errorf("a deny of room %q", clip.Bytes(d.Room, maxText))
			}
			l.adopt(g.liveDeny(d), g.now())
		}
		return r.budget.Restore(s.Budgets)
	}); err != nil {
		return err
	}
	g.live = l
	g.wake()
	if len(l.changes) > before {
		_, _ = g.enforce() // a deny redirects no new port
	}
	for _, c := range l.changes[before:] {
		g.noteLive(c, "goes on")
	}
	if err := g.record(l); err != nil {
		g.note(events.Event{Room: r.name, Reason: events.ReasonKept, Rule: clip.Bytes(err.Error(), maxText)})
	}
	return nil
}

// adopt adds a live deny of the previous guard unless it is over or a duplicate.
func (l *live) adopt(c firewall.Live, now time.Time) {
	same := func(x firewall.Live) bool { return reflect.DeepEqual(x, c) }
	if !over(c.Until, now) && !slices.ContainsFunc(l.changes, same) {
		l.changes = append(l.changes, c)
	}
}

// liveDeny returns the change that was recorded as d.
func (g *Guard) liveDeny(d kept.Deny) firewall.Live {
	c := d.Live
	if d.Ends > 0 {
		c.Until = g.booted.Add(d.Ends)
	}
	c.Rule.Line = liveLine(c.Until)
	return c
}

// record writes the live denies to the rooms' records. g.mu is held.
func (g *Guard) record(l *live) error {
	var errs []error
	for name, r := range g.rooms {
		if err := r.kept.Denies(g.denies(l, name)); err != nil {
			errs = append(errs, fmt.Errorf("room %q: %w; it will be lost when the guard restarts", name, err))
		}
	}
	return errors.Join(errs...)
}

// denies returns the live denies of a room as they are recorded.
func (g *Guard) denies(l *live, room string) (out []kept.Deny) {
	for _, c := range l.changes {
		if !c.Deny || c.Room != "" && c.Room != room {
			continue
		}
		d := kept.Deny{Live: c}
		if d.Until = (time.Time{}); !c.Until.IsZero() {
			d.Ends = c.Until.Sub(g.booted)
		}
		out = append(out, d)
	}
	return out
}

// fits refuses what doesn't fit into the rooms' records, next to the spent
// budgets unless a reset clears them.
func (g *Guard) fits(l *live, reset bool) error {
	for _, p := range l.effective().Rooms {
		r := g.rooms[p.Room]
		if r == nil {
			continue // it has no network
		}
		if err := kept.CheckDenies(g.denies(l, p.Room)); err != nil {
			return fmt.Errorf("room %q: %w", p.Room, err)
		}
		if err := r.budget.Fits(&p, reset); err != nil {
			return err
		}
	}
	return nil
}

// forget clears the rooms' spent budgets, and the previous guard's records of
// rooms that aren't served yet. g.mu is held.
func (g *Guard) forget() error {
	var errs []error
	for _, r := range g.rooms {
		errs = append(errs, r.reopen(), r.budget.Reset())
	}
	return errors.Join(errs...)
}

// reopen opens the rooms that are closed because their record can't be read.
func (g *Guard) reopen() (any, error) {
	return g.commit(false, func(*live) (notes []func(), err error) {
		for _, r := range g.rooms {
			if r.closedFor() != "" {
				err = errors.Join(err, r.reopen(), r.budget.Reset())
			}
		}
		return nil, err
	})
}

// reopen serves a room that wasn't served yet without the previous guard's record.
// g.mu is held.
func (r *room) reopen() error {
	if r.kept.Opened() {
		return nil
	}
	if err := r.kept.Open(nil, nil); err != nil {
		return fmt.Errorf("room %q: %w", r.name, err)
	}
	close(r.reopened)
	r.setClosedFor("") // here, so that the request's answer shows it open
	return nil
}

// unreadable closes the room until it is reopened or reconnects.
func (r *room) unreadable(ctx context.Context, c *handover.Client, why error) {
	r.setClosedFor(why.Error())
	defer r.setClosedFor("")
	r.guard.note(events.Event{Room: r.name, Reason: events.ReasonKept, Rule: why.Error() + ": closed until `workshop firewall reload`"})
	r.once.Do(func() { close(r.served) }) // the others don't wait for it
	select {
	case <-c.Done():
	case <-ctx.Done():
	case <-r.reopened:
	}
}

func (r *room) setClosedFor(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = why
}

// closedFor returns why the room is closed; "" if it isn't.
func (r *room) closedFor() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// recordBudgets is the Record function of the room's budgets.
func (r *room) recordBudgets(spent []kept.Spent) error {
	err := r.kept.Budgets(spent)
	if err != nil {
		r.guard.note(events.Event{Room: r.name, Reason: events.ReasonKept, Rule: clip.Bytes(err.Error(), maxText)})
	}
	return err
}
