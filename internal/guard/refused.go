package guard

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/nflog"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// whyRefused explains a packet that the room's rules refused: a port of no line,
// or a protocol that isn't carried.
func (r *room) whyRefused(p nflog.Packet, name string) (reason, suggest string) {
	if p.Protocol != "tcp" {
		return events.ReasonUnsupported, ""
	}
	m := r.policy().Matcher
	if n, err := firewall.ParseName(name); err == nil {
		if d := m.Name(n, p.Port); !d.Allowed {
			return d.Reason, d.Suggest
		}
	}
	d := m.Addr(p.Dst, p.Port)
	if d.Allowed {
		// The policy changed; the room's rules don't have the port yet.
		return firewall.ReasonPort, ""
	}
	d = r.guard.dialer.Refused(m, d, p.Dst, p.Port)
	return d.Reason, d.Suggest
}

// again reports whether a listener can be used after an error.
func again(err error) bool { return !errors.Is(err, net.ErrClosed) }

// failures returns what failed in a worker's room. Handlers report it before they
// answer; what the room's rules refused is read here, if nobody has yet.
func (g *Guard) failures(r control.Request) (any, error) {
	p := g.store.Current().Policy
	i := slices.IndexFunc(p.Rooms, func(p firewall.RoomPolicy) bool { return slices.Contains(p.Workers, r.Worker) })
	switch {
	case i < 0:
		return nil, fmt.Errorf("there is no worker %q", clip.Bytes(r.Worker, maxText))
	case r.Since.IsZero():
		return nil, errors.New("the time is missing")
	}
	room := g.rooms[p.Rooms[i].Room]
	if room == nil || g.sink == nil {
		return control.Failures{}, nil
	}
	f := control.Failures{Room: room.name, Workers: p.Rooms[i].Workers}
	if s := room.current(); s != nil {
		for _, log := range s.refused {
			log.Drain()
		}
	}
	f.Events = g.sink.Failed(room.name, r.Since)
	return f, nil
}
