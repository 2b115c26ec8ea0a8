package guard

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// state returns the guard's current state.
func (g *Guard) state() control.State {
	g.mu.Lock()
	l := g.live.clone()
	stored := !g.pending
	g.mu.Unlock()
	s := control.State{
		Workshop: l.base.Workshop, Started: g.started.UTC(), Generation: g.store.Current().Generation, Digest: l.digest.File, Values: l.digest.Values,
		Live: l.changes, Stored: stored, Learning: l.learning, Upstreams: upstreams(l.base), Goroutines: runtime.NumGoroutine(),
	}
	for i := range s.Live {
		s.Live[i].Until = g.wall(s.Live[i].Until)
	}
	for room, end := range s.Learning {
		s.Learning[room] = g.wall(end)
	}
	credentials := map[string][]control.CredentialState{}
	g.leases.Each(func(l lease.Line, leased bool) {
		if l.OfProxy() {
			s.ProxyCredential = &control.CredentialState{Name: l.Credential, Host: g.dialer.Proxy.String(), Leased: leased}
			return
		}
		credentials[l.Room] = append(credentials[l.Room], control.CredentialState{Name: l.Credential, At: l.At, Host: l.Host, Leased: leased})
	})
	s.Rooms = make([]control.RoomState, len(l.base.Rooms))
	var wg sync.WaitGroup
	for i, r := range l.base.Rooms {
		s.Rooms[i] = control.RoomState{Room: r.Room, Workers: slices.Clone(r.Workers), Mode: r.Mode, Credentials: credentials[r.Room]}
		if room := g.rooms[r.Room]; room != nil {
			wg.Go(func() { room.state(&s.Rooms[i]) })
		}
	}
	wg.Wait()
	if g.sink != nil {
		s.Dropped = g.sink.Dropped()
	}
	s.Panics = panics.Count()
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Descriptors = len(fds) - 1 // the one that reads
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.HeapBytes = m.HeapAlloc
	return s
}

// upstreams returns the upstreams that a policy names.
func upstreams(p *firewall.Policy) (out []control.Upstream) {
	for _, r := range p.Resolvers {
		if a, err := firewall.ParseResolver(r); err == nil {
			out = append(out, control.Upstream{Kind: "resolver", Address: a.String()})
		}
	}
	if x, err := firewall.ParseProxy(p.Proxy); err == nil {
		out = append(out, control.Upstream{Kind: "proxy", Address: x.String(), Credential: p.ProxyCredential})
	}
	return out
}

// wall converts an end to the wall clock, which may have been set since the guard
// started.
func (g *Guard) wall(end time.Time) time.Time {
	if set := time.Since(g.now().Round(0)); !end.IsZero() && set.Abs() > time.Second {
		end = end.Add(set)
	}
	return end.UTC()
}

func (r *room) state(out *control.RoomState) {
	out.Budgets, out.Closed = r.budget.State(r.policy()), r.closedFor()
	s := r.current()
	if s == nil || s.gone() {
		return
	}
	c, err := s.client.Counters()
	if err != nil {
		return // the room has ended
	}
	out.Served, out.Connections, out.Refused, out.Kind = true, s.proxy.Flows.Carried(), c.Denied(), string(c.Kind)
}

// find returns the policy of a room.
func (l *live) find(room string) (firewall.RoomPolicy, bool) {
	i := slices.IndexFunc(l.base.Rooms, func(r firewall.RoomPolicy) bool { return r.Room == room })
	if i < 0 {
		return firewall.RoomPolicy{}, false
	}
	return l.base.Rooms[i], true
}
