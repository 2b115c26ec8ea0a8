package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

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

// restore enforces the live denies that a previous guard stored, before any room is
// served. If they can't be read, no room is until they are given up.
func (g *Guard) restore() {
	denies, err := kept.Load(g.config.Sockets)
	if err != nil {
		g.unread = err
		return
	}
	for i := range denies {
		d := &denies[i]
		if d.Ends > 0 {
			d.Until = g.booted.Add(d.Ends)
		}
		d.Rule.Line = liveLine(d.Until)
		g.live.place(*d, g.now())
	}
	g.stored = denies
}

// keep adopts the record that the previous guard left with the room, and stores
// this guard's there. It runs before the room is served. An unreadableError closes
// the room; after any other error the room is retried.
func (r *room) keep(c *handover.Client) error {
	if err := r.guard.unreadable(); err != nil {
		return &unreadableError{err}
	}
	if !r.kept.Opened() {
		f, err := c.Kept()
		if err == nil {
			err = r.kept.Open(f, r.adopt)
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
	if err := r.kept.Give(c); err != nil {
		return err
	}
	r.guard.storeBy(c)
	return nil
}

// unreadable returns why the stored denies can't be read; nil if they were.
func (g *Guard) unreadable() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unread
}

// adopt takes over the state that the previous guard recorded of the room.
func (r *room) adopt(s kept.State) error {
	if len(s.Denies) > 0 {
		return errors.New("live denies of an older guard")
	}
	return r.budget.Restore(s.Budgets)
}

// record stores the live denies by one of the rooms that are served. Without any it is
// done before one is. g.mu is held.
func (g *Guard) record(l *live) error {
	denies := g.denies(l)
	if !g.unstored(denies) {
		return nil
	}
	g.pending = true
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(g.rooms)) {
		s := g.rooms[name].current()
		if s == nil || s.gone() {
			continue
		}
		err := g.write(s.client, denies)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("room %q: %w; it will be lost when the guard restarts", name, err))
	}
	return errors.Join(errs...)
}

// storeBy stores by a room what isn't stored yet.
func (g *Guard) storeBy(c *handover.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	denies := g.denies(g.live)
	if !g.unstored(denies) {
		return
	}
	if err := g.write(c, denies); err != nil {
		g.note(events.Event{Reason: events.ReasonKept, Rule: clip.Bytes(err.Error(), maxText)})
	}
}

// unstored reports whether denies are to be stored.
func (g *Guard) unstored(denies []kept.Deny) bool {
	return g.pending || len(denies)+len(g.stored) > 0 && !reflect.DeepEqual(denies, g.stored)
}

func (g *Guard) write(c *handover.Client, denies []kept.Deny) error {
	err := kept.Store(c, denies)
	if err == nil {
		g.stored, g.pending = denies, false
	}
	return err
}

// denies returns the live denies as they are recorded.
func (g *Guard) denies(l *live) (out []kept.Deny) {
	for _, d := range l.denies() {
		if !d.Until.IsZero() {
			d.Ends = d.Until.Sub(g.booted)
		}
		out = append(out, d)
	}
	return out
}

// fits refuses what doesn't fit into the records: live denies, and spent budgets
// unless a reset clears them.
func (g *Guard) fits(l *live, reset bool) error {
	if err := kept.CheckDenies(g.denies(l)); err != nil {
		return err
	}
	for _, p := range l.effective().Rooms {
		r := g.rooms[p.Room]
		if r == nil {
			continue // it has no network
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
	g.giveUp()
	var errs []error
	for _, r := range g.rooms {
		errs = append(errs, r.reopen(), r.budget.Reset())
	}
	return errors.Join(errs...)
}

// giveUp goes on without stored denies that can't be read. g.mu is held.
func (g *Guard) giveUp() {
	if g.unread != nil {
		g.unread, g.pending = nil, true
	}
}

// reopen opens the rooms that are closed because their record can't be read.
func (g *Guard) reopen() (any, error) {
	return g.commit(false, func(*live) (notes []func(), err error) {
		g.giveUp()
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
