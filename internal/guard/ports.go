package guard

import (
	"errors"
	"net"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// tell sends the room its ports, and serves the listeners it opened for them.
// room.telling is held.
func (s *session) tell(ports []firewall.PortRange) error {
	listeners, err := s.client.Redirect(ports)
	taken := new(handover.TakenError)
	switch {
	case errors.As(err, &taken):
		s.ports = portsOf(listeners) // so that the others are sent again with the next change
	case err != nil:
		return err
	default:
		s.ports = ports
	}
	return errors.Join(err, s.serve(listeners))
}

// serve serves exactly these listeners of a room without netfilter: it closes
// earlier ones that aren't in the list and keeps those that are.
func (s *session) serve(list []handover.Listener) error {
	defer closeListeners(list) // they are copies
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the room is gone")
	}
	var errs []error
	now := make(map[uint16]*net.TCPListener, len(list))
	for _, x := range list {
		l, had := s.listeners[x.Port]
		if !had {
			var err error
			if l, err = listener(x.File); err != nil {
				errs = append(errs, err)
				continue
			}
			s.serveTCP(l)
		}
		now[x.Port] = l
	}
	for port, l := range s.listeners {
		if now[port] == nil {
			l.Close()
		}
	}
	s.listeners = now
	return errors.Join(errs...)
}

func closeListeners(list []handover.Listener) {
	for _, x := range list {
		x.File.Close()
	}
}

func portsOf(list []handover.Listener) []firewall.PortRange {
	out := make([]firewall.PortRange, len(list))
	for i, x := range list {
		out[i] = firewall.PortRange{First: x.Port, Last: x.Port}
	}
	return firewall.NormalizePorts(out)
}
