package firewall

import (
	"maps"
	"slices"
	"strings"
)

// unopenable are names, with those below, that no line opens: the room's own, and
// those that are never looked up (RFC 6761 §6.3 and §6.4, RFC 7686 §2) or only in
// reverse.
var unopenable = names("localhost " + ReadyName + " onion invalid in-addr.arpa ip6.arpa")

// UnopenableNames returns the names that no line opens, nor those below them, sorted.
func UnopenableNames() []string { return slices.Sorted(maps.Keys(unopenable())) }

// Unopenable reports whether a line with the pattern opens nothing.
func (p HostPattern) Unopenable() bool { return under(unopenable(), Name{p.name}) }

// WhyUnopenable explains to people why a line with such a pattern opens nothing.
func (p HostPattern) WhyUnopenable() string { return whySpecial(Name{p.name}) }

// WhyOwn explains to people what the room's own names and addresses are.
const WhyOwn = "the worker's own loopback, reached without a proxy; no line is needed, and nothing of this machine is there"

// whySpecial explains to people why neither mode open nor learning opens a special
// name, and what does.
func whySpecial(n Name) string {
	last := n.s[strings.LastIndexByte(n.s, '.')+1:]
	switch {
	case IsOwn(n):
		return WhyOwn
	case last == "onion":
		return "a name of the Tor network (.onion), which is never looked up; nothing opens it"
	case last == "invalid":
		return "a name that never exists (.invalid); nothing opens it"
	case under(unopenable(), n):
		return "a name of reverse look-ups, which has no address; nothing opens it"
	case n.Machine() == LoopbackName:
		return "a name of loopback addresses; nothing opens it"
	case n.Machine() == MetadataName:
		return "a name of " + reasons[Metadata.String()]
	case last == n.s:
		last = "a single label"
	default:
		last = "." + last
	}
	return "a name of the local network (" + last + "); only a line opens it, neither mode open nor learning"
}

// IsOwn reports whether a name is the room's own: the guard's DNS answers it with
// loopback addresses, and no other way leads to it.
func IsOwn(n Name) bool { return n.s == ReadyName || n.s == "localhost" || below(n.s, "localhost") }

// isSpecial reports whether a name means nothing to a resolver of the Internet, and
// tells it about the room or its network: single labels, names that are asked for
// by multicast (RFC 6762 §3) or in a home (RFC 8375), and the unopenable ones. Only
// an allow line opens the others; mode open and learning don't (D13).
func isSpecial(n Name) bool {
	switch n.s[strings.LastIndexByte(n.s, '.')+1:] {
	case n.s, "local", "arpa":
		return true
	}
	return under(unopenable(), n)
}
