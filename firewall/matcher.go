package firewall

import (
	"net/netip"
	"strings"
)

// Decision is the policy's decision about one connection or question.
type Decision struct {
	Allowed bool
	// Rule is the deciding line; nil if there is none (mode, no match). Of several
	// allow lines it is the longest.
	Rule *Rule
	// Reason is one of the Reason constants or the name of a [Class].
	Reason string
	// Suggest is the line for `network.allow` that would allow it; empty if there
	// is none.
	Suggest string
}

// Reasons of decisions.
const (
	ReasonAllowed  = "allowed"      // by an allow line
	ReasonOpen     = "open"         // by mode open
	ReasonDenied   = "denied"       // by a deny line
	ReasonNone     = "mode-none"    // the room has no network
	ReasonName     = "not-allowed"  // no line has the name or address
	ReasonPort     = "port"         // lines have it, but not with this port
	ReasonInvalid  = "invalid"      // not a name
	ReasonLearned  = "learned"      // allowed because the room learns, by no line
	ReasonSpecial  = "special-name" // a name of the local network, or one that is never looked up
	ReasonDoH      = "doh"          // a resolver over HTTPS, which only a line with its exact name allows
	ReasonEndpoint = "endpoint"     // the name is reached at its endpoint alone
	ReasonRequest  = "request"      // the endpoint's line doesn't have the request
)

// Matcher decides for one room, in a time that doesn't depend on the number of rules.
// It is immutable and safe for use by several goroutines.
type Matcher struct {
	mode        Mode
	learn       bool
	allow, deny index
	endpoints   map[string]*Rule      // by their names
	owners      map[HostPattern]*Rule // a line of each host that has an endpoint
}

// Compile makes a Matcher. The policy must not be changed afterwards.
func (p RoomPolicy) Compile() *Matcher {
	m := &Matcher{
		mode: p.Mode, learn: p.Learn && p.Mode == Restricted, allow: newIndex(p.Allow), deny: newIndex(p.Deny),
		endpoints: map[string]*Rule{}, owners: map[HostPattern]*Rule{},
	}
	for i := range p.Allow {
		if r := &p.Allow[i]; !r.Endpoint.IsZero() {
			m.endpoints[r.Endpoint.At], m.owners[r.Host] = r, r
		}
	}
	return m
}

// owner returns a line whose endpoint alone leads to the name; nil if none does.
func (m *Matcher) owner(n Name) *Rule { return m.owners[HostPattern{hostExact, n.s}] }

// index finds the rules of a name by at most one map look-up per label. The
// maps hold positions in rules.
type index struct {
	rules []Rule
	hosts map[HostPattern][]int32
	cidrs []int32
}

func newIndex(rules []Rule) index {
	x := index{rules: rules, hosts: make(map[HostPattern][]int32, len(rules))}
	for i := range rules {
		switch r := &rules[i]; {
		case r.Template != "": // not expanded: matches nothing
		case !r.Endpoint.IsZero(): // see Matcher.endpoints
		case r.CIDR.IsValid():
			x.cidrs = append(x.cidrs, int32(i))
		default:
			x.hosts[r.Host] = append(x.hosts[r.Host], int32(i))
		}
	}
	return x
}

// names calls f with the rules for a name, the longest pattern first: the name
// itself, one label more, then shorter and shorter suffixes. It stops when f
// returns true.
func (x *index) names(n Name, f func(*Rule) bool) {
	if n.s == "" || len(x.hosts) == 0 {
		return
	}
	try := func(p HostPattern) bool {
		for _, i := range x.hosts[p] {
			if f(&x.rules[i]) {
				return true
			}
		}
		return false
	}
	if try(HostPattern{hostExact, n.s}) {
		return
	}
	one := true
	for rest := n.s; ; one = false {
		at := strings.IndexByte(rest, '.')
		if at < 0 {
			return
		}
		rest = rest[at+1:]
		if one && try(HostPattern{hostOne, rest}) {
			return
		}
		if try(HostPattern{hostMany, rest}) {
			return
		}
	}
}

// addr returns the rule with the longest prefix whose range contains the address
// and that has the port, and whether others have the address with another port.
func (x *index) addr(a netip.Addr, port uint16) (best *Rule, otherPort bool) {
	for _, i := range x.cidrs {
		r := &x.rules[i]
		if !r.CIDR.Contains(a) {
			continue
		}
		if !HasPort(r.Ports, port) {
			otherPort = true
			continue
		}
		if best == nil || r.CIDR.Bits() > best.CIDR.Bits() {
			best = r
		}
	}
	return best, otherPort
}

func (x *index) name(n Name, port uint16) (best *Rule, otherPort bool) {
	x.names(n, func(r *Rule) bool {
		if HasPort(r.Ports, port) {
			best = r
			return true
		}
		otherPort = true
		return false
	})
	return best, otherPort
}

// Name decides about a connection to a port of a name. Deny always wins, whatever its
// length. The address that the name resolves to is decided separately by
// [Matcher.Dial].
func (m *Matcher) Name(n Name, port uint16) Decision {
	if n.IsZero() {
		return Decision{Reason: ReasonInvalid}
	}
	if m.mode == None {
		return Decision{Reason: ReasonNone, Suggest: suggest(n.s, port)}
	}
	if r, _ := m.deny.name(n, port); r != nil {
		return Decision{Rule: r, Reason: ReasonDenied}
	}
	if r := m.owner(n); r != nil {
		return Decision{Rule: r, Reason: ReasonEndpoint}
	}
	r, otherPort := m.allow.name(n, port)
	return m.named(n, m.allowed(r, otherPort, suggest(n.s, port)), suggest(n.s, port))
}

// Endpoint returns the line of an endpoint, nil if there is none, and decides whether its
// host is denied. The line's Requests decide about each request.
func (m *Matcher) Endpoint(at string) (*Rule, Decision) {
	r := m.endpoints[at]
	if r == nil {
		return nil, Decision{Reason: ReasonName}
	}
	n, _ := r.Host.Name()
	if denier, _ := m.deny.name(n, r.Ports[0].First); denier != nil {
		return r, Decision{Rule: denier, Reason: ReasonDenied}
	}
	return r, Decision{Allowed: true, Rule: r, Reason: ReasonAllowed}
}

// HasEndpoints reports whether a host has an endpoint, so that its name is closed
// otherwise.
func (m *Matcher) HasEndpoints() bool { return len(m.endpoints) > 0 }

// Addr decides about a connection to a port of an address without a name: by the cidr
// lines and the never-list.
func (m *Matcher) Addr(a netip.Addr, port uint16) Decision {
	a = a.Unmap()
	if m.mode == None {
		return Decision{Reason: ReasonNone, Suggest: suggestAddr(a, port)}
	}
	if r, _ := m.deny.addr(a, port); r != nil {
		return Decision{Rule: r, Reason: ReasonDenied}
	}
	r, otherPort := m.allow.addr(a, port)
	d := m.allowed(r, otherPort, suggestAddr(a, port))
	if d.Allowed {
		return m.neverList(d, a, port)
	}
	if !Classify(a).Openable() {
		return Decision{Reason: Classify(a).String()}
	}
	return d
}

// Dial decides about the address that a name was resolved to, immediately before
// connect: d is the decision of [Matcher.Name] for it. It applies the never-list (B31)
// and deny lines with a range.
func (m *Matcher) Dial(d Decision, a netip.Addr, port uint16) Decision {
	if !d.Allowed {
		return d
	}
	a = a.Unmap()
	if r, _ := m.deny.addr(a, port); r != nil {
		return Decision{Rule: r, Reason: ReasonDenied}
	}
	return m.neverList(d, a, port)
}

func (m *Matcher) neverList(d Decision, a netip.Addr, port uint16) Decision {
	c := Classify(a)
	if c.OpenedBy(d.Rule) {
		return d
	}
	// A range line can open an address independently of the name's line.
	if r, _ := m.allow.addr(a, port); r != nil && c.OpenedBy(r) {
		return Decision{Allowed: true, Rule: r, Reason: ReasonAllowed}
	}
	out := Decision{Rule: d.Rule, Reason: c.String()}
	switch {
	case !c.Openable():
	case d.Rule != nil && !d.Rule.Host.IsZero() && c != Benchmark:
		out.Suggest = "{host: " + quoteYAML(d.Rule.Host.String()) + ", port: " + portText(port) + ", private: true}"
	default:
		out.Suggest = suggestAddr(a, port)
	}
	return out
}

// named decides about names for which a mode, a wildcard or learning isn't enough: d is
// the decision by lines and mode. Questions to a resolver over HTTPS bypass the guard,
// so only a line with its exact name opens one. Mode open allows them, because it
// promises nothing about names (B24), but canary names are refused, so that browsers
// keep to the guard.
func (m *Matcher) named(n Name, d Decision, suggestion string) Decision {
	wide := d.Rule == nil || d.Rule.Host.IsWildcard()
	switch {
	case isSpecial(n):
		if d.Rule == nil && d.Reason != ReasonPort || under(unopenable(), n) {
			return Decision{Rule: d.Rule, Reason: ReasonSpecial}
		}
	case wide && isCanary(n):
		return Decision{Rule: d.Rule, Reason: ReasonDoH} // the expected answer is that it doesn't exist
	case wide && m.mode != Open && IsDoH(n):
		return Decision{Rule: d.Rule, Reason: ReasonDoH, Suggest: suggestion}
	case m.learn && !d.Allowed:
		return Decision{Allowed: true, Reason: ReasonLearned, Suggest: d.Suggest}
	}
	return d
}

// Resolvable decides about a question for a name's addresses: whether some
// port of it is allowed.
func (m *Matcher) Resolvable(n Name) Decision {
	if n.IsZero() {
		return Decision{Reason: ReasonInvalid}
	}
	if m.mode == None {
		return Decision{Reason: ReasonNone, Suggest: suggest(n.s, 443)}
	}
	if r := m.owner(n); r != nil {
		return Decision{Rule: r, Reason: ReasonEndpoint}
	}
	var denied []PortRange
	var denier *Rule
	m.deny.names(n, func(r *Rule) bool {
		denied = append(denied, r.Ports...)
		denier = r
		return false
	})
	var best, shadowed *Rule
	m.allow.names(n, func(r *Rule) bool {
		if denier == nil || len(SubtractPorts(r.Ports, denied)) > 0 {
			best = r
			return true
		}
		shadowed = r
		return false
	})
	d := m.allowed(best, false, suggest(n.s, 443))
	if best == nil && (shadowed != nil && m.mode != Open || len(SubtractPorts([]PortRange{AllPorts}, denied)) == 0) {
		return Decision{Rule: denier, Reason: ReasonDenied}
	}
	d = m.named(n, d, suggest(n.s, 443))
	if m.mode == Open && d.Allowed && d.Rule != nil && d.Rule.Host.IsWildcard() {
		return Decision{Allowed: true, Reason: ReasonOpen} // no budget of names (B24)
	}
	return d
}

func (m *Matcher) allowed(r *Rule, otherPort bool, suggestion string) Decision {
	switch {
	case r != nil:
		return Decision{Allowed: true, Rule: r, Reason: ReasonAllowed}
	case m.mode == Open:
		return Decision{Allowed: true, Reason: ReasonOpen}
	case otherPort:
		return Decision{Reason: ReasonPort, Suggest: suggestion}
	}
	return Decision{Reason: ReasonName, Suggest: suggestion}
}
