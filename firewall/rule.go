package firewall

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Covers reports whether everything that o allows is allowed by r: hosts or
// range inside, every port, private ranges only where r opens them too, and of an
// endpoint no request that r's doesn't have. Names and ranges never cover each other, nor
// do endpoints and lines that are none.
func (r Rule) Covers(o Rule) bool {
	return r.coversTarget(o) && len(o.Ports) > 0 && len(SubtractPorts(o.Ports, r.Ports)) == 0
}

// coversTarget is Covers without the ports.
func (r Rule) coversTarget(o Rule) bool {
	if o.ECH && !r.ECH || !o.Upload.within(r.Upload) || !o.Endpoint.Within(r.Endpoint) {
		return false
	}
	if r.Template != "" || o.Template != "" {
		return r.Template == o.Template && (r.Private || !o.Private)
	}
	if r.CIDR.IsValid() || o.CIDR.IsValid() {
		return r.CIDR.IsValid() && o.CIDR.IsValid() &&
			r.CIDR.Bits() <= o.CIDR.Bits() && r.CIDR.Contains(o.CIDR.Addr())
	}
	return r.Host.Covers(o.Host) && (r.Private || !o.Private)
}

// CoveredBy reports whether every port of r is covered by one of the rules. A range is
// covered by several that make it up, too.
func CoveredBy(r Rule, rules []Rule) bool {
	if len(r.Ports) == 0 {
		return false
	}
	left := r.Ports
	for _, o := range rules {
		if o.coversTarget(r) {
			if left = SubtractPorts(left, o.Ports); len(left) == 0 {
				return true
			}
		}
	}
	return r.Template == "" && r.CIDR.IsValid() && halvesCovered(r, rules)
}

// halvesCovered reports whether both halves of a range are covered.
func halvesCovered(r Rule, rules []Rule) bool {
	bits := r.CIDR.Bits()
	overlapping := slices.DeleteFunc(slices.Clone(rules), func(o Rule) bool {
		return o.Template != "" || !o.CIDR.IsValid() || !o.CIDR.Overlaps(r.CIDR)
	})
	if !slices.ContainsFunc(overlapping, func(o Rule) bool { return o.CIDR.Bits() > bits }) {
		return false
	}
	low, high := r, r
	addr := r.CIDR.Addr().AsSlice()
	low.CIDR = netip.PrefixFrom(r.CIDR.Addr(), bits+1)
	addr[bits/8] |= 1 << (7 - bits%8)
	upper, _ := netip.AddrFromSlice(addr)
	high.CIDR = netip.PrefixFrom(upper, bits+1)
	return CoveredBy(low, overlapping) && CoveredBy(high, overlapping)
}

// Target returns the rule's host pattern, range or template as written.
func (r Rule) Target() string {
	switch {
	case r.Template != "":
		return r.Template
	case r.CIDR.IsValid():
		return r.CIDR.String()
	}
	return r.Host.String()
}

// Meant is [Rule.Target] with a template replaced by its value, without its port.
func (r Rule) Meant() string {
	switch {
	case r.Template == "" || r.Value == "":
		return r.Target()
	case strings.Contains(r.Value, "/"):
		return r.Value
	}
	host, _, _ := strings.Cut(r.Value, ":")
	return host
}

// webPorts are the ports of an allow line without ports.
var webPorts = []PortRange{{80, 80}, {443, 443}}

// DefaultAllowPorts returns the ports of an allow line that names none: 80, 443.
func DefaultAllowPorts() []PortRange { return append([]PortRange(nil), webPorts...) }

// check returns an error if a rule of a policy file is not valid.
func (r Rule) check(deny bool) error {
	targets := 0
	for _, set := range []bool{!r.Host.IsZero(), r.CIDR.IsValid(), r.Template != ""} {
		if set {
			targets++
		}
	}
	if targets != 1 {
		return errors.New("exactly one of host, cidr and template must be set")
	}
	if deny && (r.ECH || !r.Upload.IsZero()) {
		return errors.New("ech and upload are for lines of allow")
	}
	if len(r.Ports) == 0 {
		return errors.New("ports are missing")
	}
	if len(r.Ports) > maxPorts {
		return fmt.Errorf("more than %d port ranges", maxPorts)
	}
	if !deny {
		if HasPort(r.Ports, 53) {
			return errors.New("port 53 is always the guard's DNS and can't be allowed")
		}
		if r.Host.IsWildcard() && !r.AnyTenant {
			if err := checkWildcard(r.Host.String(), r.Host); err != nil {
				return err
			}
		}
	}
	if err := r.checkEndpoint(deny); err != nil {
		return err
	}
	if r.CIDR.IsValid() {
		if r.CIDR != r.CIDR.Masked() {
			return fmt.Errorf("the range %s has bits set beyond its mask; write %s", r.CIDR, r.CIDR.Masked())
		}
		if r.CIDR.Addr().Is4In6() {
			return fmt.Errorf("the range %s is an IPv4 range in IPv6 form; write the IPv4 range", r.CIDR)
		}
	}
	return nil
}
