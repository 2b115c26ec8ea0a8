package firewall

import "net/netip"

// Opens reports whether some line opens addresses of class c to a name: a line of the
// name itself, or a range that contains the address. It is for the addresses in a DNS
// answer, where the port isn't known yet; the dialler checks again with the port
// ([Matcher.Dial]).
func (m *Matcher) Opens(n Name, a netip.Addr, c Class) bool {
	if c == Public {
		return true
	}
	if !c.Openable() {
		return false
	}
	open := false
	m.allow.names(n, func(r *Rule) bool {
		open = c.OpenedBy(r)
		return open
	})
	if open {
		return true
	}
	a = a.Unmap()
	for _, i := range m.allow.cidrs {
		if r := &m.allow.rules[i]; r.CIDR.Contains(a) && c.OpenedBy(r) {
			return true
		}
	}
	return false
}
