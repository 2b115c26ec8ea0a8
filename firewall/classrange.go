package firewall

import "net/netip"

// ClassifyRange returns the class of a range; false if its first and last address are
// of different classes.
func ClassifyRange(p netip.Prefix) (Class, bool) {
	first := Classify(p.Masked().Addr())
	return first, first == Classify(lastAddr(p))
}

// lastAddr returns the last address of a range.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
