package guard

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// enforce makes the live policy the one of the next decision, sends the rooms
// their ports and resets connections that are no longer allowed (B27). g.mu is
// held.
//
// Nothing opens by accident: the guard has the new policy before a room redirects
// a new port to it, and refuses connections to an old port that a room still
// redirects. A room that can't be reached keeps its ports and gets the new ones at
// its next hand-over.
func (g *Guard) enforce() (control.Applied, error) {
	st := g.store.Swap(g.live.effective())
	g.leases.SetLines(lease.LinesOf(st.Policy))
	var wg sync.WaitGroup
	var cut atomic.Int64
	errs := make([]error, len(st.Policy.Rooms))
	for i, p := range st.Policy.Rooms {
		if r := g.rooms[p.Room]; r != nil {
			wg.Go(func() {
				n, err := r.enforce()
				cut.Add(int64(n))
				errs[i] = err
			})
		}
	}
	wg.Wait()
	return control.Applied{Generation: st.Generation, Cut: int(cut.Load()), Digest: g.live.digest.File, Live: len(g.live.changes)}, errors.Join(errs...)
}

// enforce is [Guard.enforce] for one room. A room that isn't connected gets its
// ports when it connects.
func (r *room) enforce() (cut int, err error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	s := r.current()
	if s == nil || s.gone() {
		return 0, nil
	}
	p := r.policy()
	cut = s.proxy.Flows.Revoke(p) // first: a room may take seconds to answer
	if ports := firewall.RoomPorts(p.RoomPolicy); !slices.Equal(ports, s.ports) {
		if err = s.tell(ports); err != nil {
			err = fmt.Errorf("room %q can't be sent its ports; new ones stay closed until its next hand-over: %w", r.name, err)
		}
	}
	return cut, err
}

// cutRevoked resets the connections whose credential was revoked.
func (g *Guard) cutRevoked() {
	for _, r := range g.rooms {
		if s := r.current(); s != nil {
			s.proxy.Flows.Revoke(r.policy())
		}
	}
}
