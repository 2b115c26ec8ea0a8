// Package share divides bounded resources of the guard between its rooms: half is
// guaranteed to them in equal shares, half is first come, first served. A single
// room may have all.
package share

import "context"

// Pool is a number of places for all rooms together.
type Pool struct {
	own    int
	common chan struct{}
}

// NewPool returns a pool for a number of rooms. Each is guaranteed at least one
// place if there are as many places as rooms.
func NewPool(places, rooms int) *Pool {
	rooms = max(1, rooms)
	own := places / 2 / rooms
	if own == 0 && rooms <= places {
		own = 1
	}
	return &Pool{own: own, common: make(chan struct{}, places-own*rooms)}
}

// Room is one room's view of a pool. A nil Room has no bound.
type Room struct{ own, common chan struct{} }

// Room returns the view of one more room.
func (p *Pool) Room() *Room { return &Room{own: make(chan struct{}, p.own), common: p.common} }

// Place is one place of a pool. It must be freed once.
type Place struct {
	of chan struct{}
	// Nth is how many places of its part of the pool are taken, including this
	// one; Of is the size of that part.
	Nth, Of int
}

func place(of chan struct{}) Place { return Place{of: of, Nth: len(of), Of: cap(of)} }

// Free returns the place to its pool.
func (p Place) Free() {
	if p.of != nil {
		<-p.of
	}
}

// Try takes a place if one is free, preferably one guaranteed to the room.
func (r *Room) Try() (Place, bool) {
	if r == nil {
		return Place{}, true
	}
	select {
	case r.own <- struct{}{}:
		return place(r.own), true
	default:
	}
	select {
	case r.common <- struct{}{}:
		return place(r.common), true
	default:
		return Place{}, false
	}
}

// Take waits for a place; false: ctx ended first.
func (r *Room) Take(ctx context.Context) (Place, bool) {
	if p, ok := r.Try(); ok {
		return p, true
	}
	select {
	case r.own <- struct{}{}:
		return place(r.own), true
	case r.common <- struct{}{}:
		return place(r.common), true
	case <-ctx.Done():
		return Place{}, false
	}
}
