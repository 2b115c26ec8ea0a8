package guard

import (
	"errors"
	"net"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/nflog"
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
	return d.Reason, d.Suggest
}

// again reports whether a listener can be used after an error.
func again(err error) bool { return !errors.Is(err, net.ErrClosed) }
