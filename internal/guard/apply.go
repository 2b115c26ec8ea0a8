package guard

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

// enforce makes what is live now the policy of the next decision, tells the
// rooms their ports and resets what is carried and no longer allowed (B27).
// g.mu is held.
//
// Nothing opens by accident: the guard decides by the new policy before a room
// sends it anything of a new port, and what a room still sends of an old one it
// refuses. A room that can't be told keeps its ports and is told all at its next
// hand-over.
func (g *Guard) enforce() (control.Applied, error) {
	st := g.store.Swap(g.live.effective())
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
	return control.Applied{Generation: st.Generation, Cut: int(cut.Load()), Digest: g.live.digest, Live: len(g.live.changes)}, errors.Join(errs...)
}

// enforce is enforce for one room. A room that is away gets everything when it
// comes.
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
			err = fmt.Errorf("room %q couldn't be told its ports, so new ones stay closed until its next hand-over: %w", r.name, err)
		}
	}
	return cut, err
}
