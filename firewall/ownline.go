package firewall

// OnlyByName reports whether a wildcard doesn't reach the pattern's name, although it
// matches it: resolvers over HTTPS have lines of their own.
func (p HostPattern) OnlyByName() bool {
	n, exact := p.Name()
	return exact && IsDoH(n)
}

// InOpen reports whether mode open reaches all names of the pattern without a line.
func (p HostPattern) InOpen() bool {
	if p.IsZero() {
		return false
	}
	n := Name{p.name}
	if p.IsWildcard() {
		n.s = "x." + n.s // the shortest that it matches
	}
	return !isSpecial(n) && !(p.kind == hostExact && isCanary(n))
}

// WithoutDenied returns the lines of allow with what lines of deny take from them as a
// whole: the ports of the same names or addresses, or of more. A deny of a part of a
// line takes nothing.
func WithoutDenied(allow, deny []Rule) []Rule {
	if len(deny) == 0 {
		return allow
	}
	out := make([]Rule, 0, len(allow))
	for _, r := range allow {
		target := Rule{Host: r.Host, CIDR: r.CIDR, Template: r.Template, Private: r.Private}
		for _, d := range deny {
			d.Private = true
			if d.coversTarget(target) {
				r.Ports = SubtractPorts(r.Ports, d.Ports)
			}
		}
		if len(r.Ports) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// Deciding returns the lines of allow without those that never decide: for each name,
// range and port the first of equal targets does, of each endpoint the first line.
func Deciding(allow []Rule) []Rule {
	taken := make(map[string][]PortRange, len(allow))
	out := make([]Rule, 0, len(allow))
	for _, r := range allow {
		target := r.Target() + " " + r.Endpoint.At
		before := taken[target]
		taken[target] = append(before, r.Ports...)
		if len(before) > 0 {
			if r.Ports = SubtractPorts(r.Ports, before); len(r.Ports) == 0 {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
