package dns

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/share"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Server answers the questions of one room.
type Server struct {
	// Room returns the room's current policy.
	Room func() *policy.Room
	// Resolver is used for allowed names only.
	Resolver *Resolver
	// IPv6 reports whether the guard can dial IPv6; if not, AAAA isn't queried.
	IPv6 func() bool
	// Answer decides whether an answer may contain an address.
	Answer func(m *firewall.Matcher, n firewall.Name, a netip.Addr) firewall.Decision
	// Pins gets every answered address.
	Pins *Pins
	// Admit, if not nil, may override the decision for an allowed name before it
	// is looked up.
	Admit func(firewall.Name, firewall.Decision) firewall.Decision
	// Asking bounds questions to upstream, Waiting those over UDP that wait for an
	// answer; nil: nothing does.
	Asking, Waiting *share.Room
	// Report gets denials.
	Report func(events.Event)
	// Tried, if not nil, reports whether a client is what `firewall explain` tries.
	Tried func(from netip.AddrPort) bool
}

// of is the server for one client.
func (s *Server) of(from netip.AddrPort) *Server {
	if s.Tried == nil || !s.Tried(from) {
		return s
	}
	of := *s
	of.Report = events.Explained(s.Report)
	return &of
}

// maxClientTTL bounds the TTL in answers to clients, so that they ask again before
// a pin expires.
const maxClientTTL = 60

// lookupTimeout bounds how long a client's question waits: the timeout in rooms'
// resolv.conf is 2 s, and a SERVFAIL is better than silence. The look-up continues
// for retries.
const lookupTimeout = 1900 * time.Millisecond

// Serve returns the answer to one message; nil means that nothing is sent. tcp
// lifts the limit on the size. With inline it doesn't wait for upstream: if it would
// have to, ok is false, and the caller calls again on another goroutine.
func (s *Server) Serve(ctx context.Context, msg []byte, tcp, inline bool) (out []byte, ok bool) {
	q, c, err := parseQuery(msg)
	if err != nil {
		s.odd(events.ReasonMalformed)
		return nil, true
	}
	limit := q.udpSize
	if tcp {
		limit = 64<<10 - 1
	}
	if c != success {
		if c == notImp {
			s.odd(events.ReasonUnsupported)
		} else {
			s.odd(events.ReasonMalformed)
		}
		return packReply(question{id: q.id, rd: q.rd, edns: q.edns}, reply{code: c}, limit), true
	}
	r, ok := s.answer(ctx, q, inline)
	if !ok {
		return nil, false
	}
	return packReply(q, r, limit), true
}

func (s *Server) answer(ctx context.Context, q question, inline bool) (reply, bool) {
	if q.class != classINET {
		s.odd(events.ReasonUnsupported)
		return reply{code: refused}, true
	}
	text := strings.TrimSuffix(q.name, ".")
	name, err := firewall.ParseName(text)
	if err == nil && firewall.IsOwn(name) {
		return loopback(q.kind), true
	}
	d := firewall.Decision{Reason: firewall.ReasonInvalid}
	room := s.Room()
	if err == nil {
		if d = room.Matcher.Resolvable(name); d.Allowed && s.Admit != nil {
			d = s.Admit(name, d)
		}
	}
	if !d.Allowed {
		e := events.Denied(events.DNS, d)
		e.Name, e.Port, e.Protocol = clip.Bytes(text, maxText), 53, "dns"
		s.Report(e)
		return reply{code: nxDomain, blocked: explain(clip.Bytes(text, maxText), d)}, true
	}
	if q.kind != A && (q.kind != AAAA || !s.IPv6()) {
		return reply{}, true // NODATA
	}
	a, found := s.Resolver.Cached(name, q.kind)
	if !found {
		if inline {
			return reply{}, false
		}
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		if a, err = s.Resolver.Lookup(ctx, s.Asking, name, q.kind); err != nil {
			s.unresolved(name, d)
			return reply{code: servFail}, true
		}
	}
	if !a.Exists {
		s.unresolved(name, d)
		return reply{code: nxDomain}, true
	}
	return s.found(room, name, a), true
}

// odd reports a message that isn't a question for Internet names. The event has
// nothing of the message, so that a flood is merged into one event.
func (s *Server) odd(reason string) {
	s.Report(events.Event{Kind: events.DNS, Verdict: events.Deny, Reason: reason, Port: 53, Protocol: "dns"})
}

// unresolved reports an allowed name that can't be resolved, so that it isn't taken
// for a refusal. It leaves out names under a wildcard: a worker could invent those
// and fill the log.
func (s *Server) unresolved(name firewall.Name, d firewall.Decision) {
	e := events.Event{Kind: events.DNS, Verdict: events.Note, Reason: events.ReasonUnresolved, Name: name.String(), Protocol: "dns"}
	switch {
	case d.Rule != nil && !d.Rule.Host.IsWildcard():
		e.Rule = d.Rule.Line
	case d.Reason != firewall.ReasonLearned: // `firewall suggest` lists what a room that learns asked for in vain
		return
	}
	s.Report(e)
}

// found filters and pins the addresses of an allowed name.
func (s *Server) found(room *policy.Room, name firewall.Name, a Answer) reply {
	ok := make([]netip.Addr, 0, len(a.Addrs))
	for _, addr := range a.Addrs {
		d := s.Answer(room.Matcher, name, addr)
		if d.Allowed {
			ok = append(ok, addr)
			continue
		}
		e := events.Denied(events.DNS, d)
		e.Name, e.Address, e.Protocol = name.String(), addr.String(), "dns"
		s.Report(e)
	}
	left := time.Until(a.Expires)
	if len(ok) > 0 {
		s.Pins.Add(name, ok, left)
	}
	return reply{addrs: ok, ttl: uint32(max(1, min(maxClientTTL, left/time.Second)))}
}

func loopback(t Type) reply {
	switch t {
	case A:
		return reply{addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, ttl: 1}
	case AAAA:
		return reply{addrs: []netip.Addr{netip.IPv6Loopback()}, ttl: 1}
	}
	return reply{}
}

// explain is the text of the extended error. A model may read it: it has nothing of
// what would allow the name.
func explain(name string, d firewall.Decision) string {
	why := d.Reason
	switch {
	case d.Reason == firewall.ReasonDenied:
		why = "by a deny line"
	case d.Reason == firewall.ReasonEndpoint && d.Rule != nil:
		return clip.Bytes(fmt.Sprintf("workshop: %s is reached at its endpoint alone: send requests to %s/ instead, by HTTP", name, d.Rule.Endpoint.URL()), maxText)
	}
	return clip.Bytes("workshop: "+name+" is not allowed ("+why+"): do not retry, tell the person", maxText)
}

// maxText bounds text that comes from a worker, in bytes.
const maxText = 300
