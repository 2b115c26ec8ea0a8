package workshop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// notInWorker reports what can't be set by a worker's `network:` at all.
func notInWorker(n *partialNetwork, base Network) []excess {
	var out []excess
	if n.DNS != nil {
		x := excess{key: "network.dns", at: n.Source.Range, summary: "dns can't be set by a worker: one guard serves all workers of a workshop", hint: "move it to the workshop's network"}
		if len(*n.DNS) > 0 {
			x.at = (*n.DNS)[0].Source.Range
		}
		if len(base.DNS) > 0 {
			x.grant = base.DNS[0].Source.Range
		}
		out = append(out, x)
	}
	if n.Proxy != nil {
		out = append(out, excess{key: "network.proxy", at: n.Proxy.Source.Range, grant: base.Proxy.Source.Range,
			summary: "proxy can't be set by a worker: one guard serves all workers of a workshop", hint: "move it to the workshop's network"})
	}
	if n.ProxyCredential != nil {
		out = append(out, excess{key: "network.proxy_credential", at: n.ProxyCredential.Source.Range, grant: base.ProxyCredential.Source.Range,
			summary: "proxy_credential can't be set by a worker: one guard serves all workers of a workshop", hint: "move it to the workshop's network"})
	}
	if n.OwnRoom != nil && !n.OwnRoom.V && base.OwnRoom.V {
		out = append(out, roomExcess(Network{Mode: Value[firewall.Mode]{V: firewall.Restricted}, OwnRoom: *n.OwnRoom}, base)...)
	}
	return out
}

// roomExcess: a worker would share a room, and the outer network gives each one its own.
func roomExcess(inner, outer Network) []excess {
	if inner.Mode.V == firewall.None || inner.OwnRoom.V || !outer.OwnRoom.V {
		return nil
	}
	return []excess{{key: "network.room", at: sourceOr(inner.OwnRoom.Source, inner.Source), grant: outer.OwnRoom.Source.Range, have: "shared", granted: "own",
		summary: "the workshop gives every worker a room of its own, this one would share", hint: "remove `room: shared` here, or `room: own` there"}}
}

// idle reports an allow that has no effect: the container's mode is none by that of the
// outer one.
func (c *partialContainer) idle(out, outer Network, p *problems) {
	if n := c.Network; n == nil || n.Mode != nil || n.Allow == nil || len(*n.Allow) == 0 || out.Mode.V != firewall.None || c.refusedBelow("network") {
		return
	}
	x := diag.Diagnostic{Severity: diag.Error, Code: "allow-without-mode", Range: c.at("network.allow", diag.Source{}),
		Summary: "allow has no effect: the network's mode is none, as that of the workshop", Hint: "write mode: restricted here, and what is allowed in the workshop's network, too; or remove allow"}
	if at := sourceOr(outer.Mode.Source, outer.Source); at.Filename != "" {
		x.Related = []diag.Related{{Message: "what the workshop grants", Range: at}}
	}
	p.add(x)
}

// networkExcess compares what two networks reach. inner is within outer when
//
//   - its mode is not higher (none < restricted < open),
//   - every line of its allow is covered by lines of outer's allow, host, port
//     and range alike; where outer is open, a line for public names or
//     addresses is covered by that,
//   - every line of outer's deny that touches something inner allows is in
//     inner's deny as well.
//
// Presets are expanded on both sides. Agents are compared in every mode.
func networkExcess(inner, outer Network, work *effort) []excess {
	agents := agentsExcess(inner.Agents, outer.Agents, work)
	if inner.Mode.V == firewall.None {
		return agents
	}
	if inner.Mode.V > outer.Mode.V {
		out := append(agents, modeExcess(inner, outer))
		if work.exact {
			out = append(out, raisedExcess(inner, outer, work)...)
		}
		return out
	}
	if work.exact {
		inner.Allow, outer.Allow = effectiveLines(inner, work), firewall.Deciding(outer.Allow)
	}
	out, covered := linesExcess(inner, outer, work)
	out = append(out, agents...)
	out = append(out, longestExcess(inner, outer, work)...)
	if work.exact { // what isn't covered was reported with its line
		inner.Allow = covered
	}
	for _, d := range outer.Deny {
		if same(inner.Deny, outer.Deny) || !work.spend(1+len(inner.Deny)+len(inner.Allow)) {
			break
		}
		if denyKept(d, inner) {
			continue
		}
		out = append(out, excess{key: "network.deny", at: inner.Source.Range, grant: d.Source.Range, grantedOf: Part{Rule: &d},
			unknown: work.exact && denyUnknown(d, inner, outer),
			summary: ruleText(d) + " is denied there and not here", hint: "add `deny: [" + d.Target() + "]`"})
	}
	return out
}

// effectiveLines are the lines of allow that decide something and aren't denied.
func effectiveLines(n Network, work *effort) []firewall.Rule {
	allow := firewall.Deciding(n.Allow)
	if work.spend(len(allow) * (1 + len(n.Deny))) {
		allow = firewall.WithoutDenied(allow, n.Deny)
	}
	return allow
}

func modeExcess(inner, outer Network) excess {
	grant := outer.Mode.Source.Range
	if grant.Filename == "" {
		grant = outer.Source.Range
	}
	at := inner.Mode.Source.Range
	if at.Filename == "" {
		at = inner.Source.Range
	}
	return excess{key: "network.mode", at: at, grant: grant, have: inner.Mode.V.String(), granted: outer.Mode.V.String(),
		summary: fmt.Sprintf("network %s is more than the workshop's %s", inner.Mode.V, outer.Mode.V),
		hint:    fmt.Sprintf("write %s here, or raise the workshop's network to %s", outer.Mode.V, inner.Mode.V)}
}

// raisedExcess are the lines that a network whose mode is more reaches beside what the
// mode says: all of them in mode restricted, those that open needs in open.
func raisedExcess(inner, outer Network, work *effort) []excess {
	inner.Allow = effectiveLines(inner, work)
	if inner.Mode.V == firewall.Open {
		inner.Allow = slices.DeleteFunc(slices.Clone(inner.Allow), public)
	}
	out, _ := linesExcess(inner, outer, work)
	return out
}

// linesExcess are the lines of allow that outer doesn't cover; covered are the others.
func linesExcess(inner, outer Network, work *effort) (out []excess, covered []firewall.Rule) {
	if same(inner.Allow, outer.Allow) {
		return nil, inner.Allow
	}
	known := map[string]bool{} // equal lines need no search
	if work.exact {
		for i := range outer.Allow {
			known[ruleKey(outer.Allow[i])] = true
		}
	}
	for _, r := range inner.Allow {
		if known[ruleKey(r)] {
			covered = append(covered, r)
			continue
		}
		if !work.spend(1 + len(outer.Allow)) {
			break
		}
		freed := work.exact && r.Endpoint.At != "" && !allowedBy(r, withoutCredential(outer, r.Endpoint.Credential))
		if !freed && allowedBy(r, outer) {
			covered = append(covered, r)
			continue
		}
		if !work.spend(2 * len(outer.Allow)) { // looked through again, for the words
			break
		}
		grant, granted := nearestGrant(r, outer)
		out = append(out, excess{key: "network.allow", at: r.Source.Range, grant: grant, haveOf: Part{Rule: &r}, grantedOf: Part{Rule: granted},
			unknown: work.exact && lineUnknown(r, inner, outer),
			summary: ruleText(r) + " is not covered by a line of the workshop's allow",
			hint:    allowHint(r, outer)})
	}
	return out, covered
}

// withoutCredential leaves out lines with another credential than a line has. One that has lost
// its credential isn't narrower for a review: the guard then passes those of the worker's own,
// which it refuses beside a credential.
func withoutCredential(n Network, credential string) Network {
	if slices.ContainsFunc(n.Allow, func(o firewall.Rule) bool { return o.Endpoint.Credential != credential }) {
		n.Allow = slices.DeleteFunc(slices.Clone(n.Allow), func(o firewall.Rule) bool { return o.Endpoint.Credential != credential })
	}
	return n
}

// lineUnknown reports whether a line that isn't covered may be, by the value of a
// variable: its own, or that of a line which inner doesn't have.
func lineUnknown(r firewall.Rule, inner, outer Network) bool {
	return r.Template != "" || anyRule(outer.Allow, func(o firewall.Rule) bool {
		return o.Template != "" && portsMeet(o.Ports, r.Ports) && !firewall.CoveredBy(o, inner.Allow)
	})
}

// denyUnknown reports whether a line that isn't denied may be, by the value of a
// variable: its own, that of a line which outer doesn't have, or that of all lines
// of which it could take something.
func denyUnknown(d firewall.Rule, inner, outer Network) bool {
	if d.Template != "" || anyRule(inner.Deny, func(o firewall.Rule) bool {
		return o.Template != "" && portsMeet(o.Ports, d.Ports) && !firewall.CoveredBy(o, outer.Deny)
	}) {
		return true
	}
	return inner.Mode.V != firewall.Open && !anyRule(inner.Allow, func(r firewall.Rule) bool { return r.Template == "" && mayMeet(r, d) })
}

// same reports whether a list was inherited: it covers itself.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func allowedBy(r firewall.Rule, n Network) bool {
	lines := n.Allow
	if r.Host.OnlyByName() {
		lines = slices.DeleteFunc(slices.Clone(lines), func(o firewall.Rule) bool { return o.Host.IsWildcard() })
	}
	if firewall.CoveredBy(r, lines) {
		return true
	}
	return n.Mode.V == firewall.Open && public(r)
}

// public reports whether a rule opens nothing but what mode open reaches too.
// A range may be so wide that a private one is inside it; the widest
// private ranges begin at /8 (10.0.0.0) and /7 (fc00::), RFC 1918 and 4193,
// and none that a rule can open is smaller than /16.
func public(r firewall.Rule) bool {
	if !r.Endpoint.IsZero() {
		return false // its name is the workshop's
	}
	if !r.CIDR.IsValid() {
		return r.Host.InOpen() && !r.Private
	}
	if r.CIDR.Addr().Is4() && r.CIDR.Bits() < 16 || r.CIDR.Addr().Is6() && r.CIDR.Bits() < 7 {
		return false
	}
	return firewall.Classify(r.CIDR.Addr()) == firewall.Public
}

// denyKept reports whether inner denies d too, or reaches nothing of it.
func denyKept(d firewall.Rule, inner Network) bool {
	if firewall.CoveredBy(d, inner.Deny) {
		return true
	}
	if inner.Mode.V == firewall.Open {
		return false
	}
	for _, a := range inner.Allow {
		if mayMeet(a, d) {
			return false
		}
	}
	return true
}

// mayMeet reports whether two rules can be about one connection. Two host
// patterns have a name in common only when one covers the other. A name may
// have any address, so a name and a range may always meet.
func mayMeet(a, b firewall.Rule) bool {
	if !portsMeet(a.Ports, b.Ports) {
		return false
	}
	if !a.Host.IsZero() && !b.Host.IsZero() {
		return a.Host.Covers(b.Host) || b.Host.Covers(a.Host)
	}
	if a.CIDR.IsValid() && b.CIDR.IsValid() {
		return a.CIDR.Overlaps(b.CIDR)
	}
	return true
}

func portsMeet(a, b []firewall.PortRange) bool {
	for _, x := range a {
		for _, y := range b {
			if x.First <= y.Last && y.First <= x.Last {
				return true
			}
		}
	}
	return false
}

// nearestGrant returns the line that a reader would compare: one for the same
// host with other ports, else the whole network.
func nearestGrant(r firewall.Rule, n Network) (diag.Range, *firewall.Rule) {
	for _, o := range n.Allow {
		if sameTarget(r, o) {
			return o.Source.Range, &o
		}
	}
	if n.Source.Range.Filename != "" {
		return n.Source.Range, nil
	}
	return n.Mode.Source.Range, nil
}

func sameTarget(r, o firewall.Rule) bool {
	o.Ports, o.Private, o.ECH, o.Upload, o.Endpoint = r.Ports, true, true, firewall.Budget{}, r.Endpoint
	return o.Covers(r)
}

func allowHint(r firewall.Rule, n Network) string {
	for _, o := range n.Allow {
		if sameTarget(r, o) {
			switch hint := endpointHint(r, o); {
			case hint != "":
				return hint
			case r.Private && !o.Private:
				return fmt.Sprintf("the workshop's line for %s doesn't open private addresses; add `private: true` there or remove it here", o.Target())
			case r.ECH && !o.ECH:
				return fmt.Sprintf("the workshop's line for %s doesn't let encrypted hellos pass; add `ech: allow` there or remove it here", o.Target())
			case !keepsBudget(r, o):
				return fmt.Sprintf("the workshop's line for %s limits uploads; add `upload: %s` or less here", o.Target(), o.Upload)
			}
			return fmt.Sprintf("the workshop's line for %s allows port %s; add the port there or remove it here", o.Target(), portsText(o.Ports))
		}
	}
	return "add it to the workshop's allow, or remove it here"
}

func ruleText(r firewall.Rule) string {
	text := r.Target() + " port " + portsText(r.Ports) + endpointText(r.Endpoint)
	if r.Preset != "" {
		text += " (of the preset " + r.Preset + ")"
	}
	return text
}

func portsText(ports []firewall.PortRange) string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = fmt.Sprint(p.First)
		if p.Last != p.First {
			out[i] += fmt.Sprint("-", p.Last)
		}
	}
	return strings.Join(out, ",")
}
