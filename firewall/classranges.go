package firewall

import "net/netip"

// ClassRange is a range of addresses with its class.
type ClassRange struct {
	Prefix netip.Prefix
	Class  Class
}

// ClassRanges returns the ranges of all classes but [Public], in the order in which
// [Classify] looks them up: the first that contains an address has its class.
func ClassRanges() []ClassRange {
	out := make([]ClassRange, len(classes))
	for i, c := range classes {
		out[i] = ClassRange{c.prefix, c.class}
	}
	return out
}
