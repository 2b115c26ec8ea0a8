package firewall

import (
	"fmt"
	"strings"
)

// HostPattern is a name or a wildcard of workshop.yaml:
//
//	example.org      that name
//	*.example.org    exactly one label more
//	**.example.org   one label or more; never example.org itself
//
// Patterns are comparable with ==. The zero value matches nothing.
type HostPattern struct {
	kind hostKind
	name string // canonical, without the stars
}

// Bounds of the names under a wildcard that the guard looks up. A label of 40 octets holds
// a SHA-1 in hexadecimal, as content networks use; real names are far shorter than 120.
const (
	MaxWildLabel = 40
	MaxWildName  = 120
)

type hostKind uint8

const (
	hostNone  hostKind = iota
	hostExact          // x
	hostOne            // *.x
	hostMany           // **.x
)

// ParseHostPattern parses a pattern. Non-ASCII names become A-labels.
// Errors are of type *[HostError]. One of them comes together with a usable
// pattern: for [HostAnyTenant] it is up to the caller to accept the pattern
// (`any_tenant: true`) or to report the error.
func ParseHostPattern(s string) (HostPattern, error) {
	kind, rest := hostExact, s
	switch {
	case s == "*" || s == "**" || s == "*." || s == "**.":
		return HostPattern{}, hostError(s, HostPublicSuffix, fmt.Sprintf("%q would allow every name", s), "write `network: open` to allow all public names, or list the names")
	case strings.HasPrefix(s, "**."):
		kind, rest = hostMany, s[3:]
	case strings.HasPrefix(s, "*."):
		kind, rest = hostOne, s[2:]
	case strings.HasPrefix(s, "."):
		return HostPattern{}, hostError(s, HostWildcard, fmt.Sprintf("%q begins with a dot", s), "write *"+s+" (one label more) or **"+s+" (one or more)")
	}
	n, err := parsePolicyName(s, rest)
	if err != nil {
		return HostPattern{}, err
	}
	p := HostPattern{kind, n.s}
	if kind == hostExact {
		return p, nil
	}
	if len(n.s)+len("a.") > maxName {
		return HostPattern{}, hostError(s, HostLength, "no name can be longer than the pattern's by a label (RFC 1035 §2.3.4)", "")
	}
	if err := checkWildcard(s, p); err != nil {
		if err.Problem == HostAnyTenant {
			return p, err
		}
		return HostPattern{}, err
	}
	return p, nil
}

// parsePolicyName parses the name in a pattern written by a person.
func parsePolicyName(whole, s string) (Name, error) {
	if len(s) > 4*maxName {
		_, err := ParseName(s)
		return Name{}, err
	}
	ascii := s
	for i := range len(s) {
		if s[i] < 0x80 {
			continue
		}
		var err error
		if ascii, err = toALabels.ToASCII(s); err != nil {
			return Name{}, hostError(whole, HostIDN, fmt.Sprintf("%q is not a valid internationalised name (RFC 5891)", whole), "")
		}
		break
	}
	return ParseName(ascii)
}

// Match reports whether the pattern covers the name.
func (p HostPattern) Match(n Name) bool {
	if n.s == "" {
		return false
	}
	switch p.kind {
	case hostExact:
		return n.s == p.name
	case hostOne:
		return below(n.s, p.name) && strings.IndexByte(n.s, '.') == len(n.s)-len(p.name)-1
	case hostMany:
		return below(n.s, p.name)
	}
	return false
}

// Covers reports whether every name that q matches is matched by p.
func (p HostPattern) Covers(q HostPattern) bool {
	switch {
	case p.kind == hostNone || q.kind == hostNone:
		return false
	case q.kind == hostExact:
		return p.Match(Name{q.name})
	case p.kind == hostOne:
		return q == p
	case p.kind == hostMany:
		return q.name == p.name || below(q.name, p.name)
	}
	return false
}

// below reports whether name is base with at least one label in front.
func below(name, base string) bool {
	at := len(name) - len(base) - 1
	return at > 0 && name[at] == '.' && name[at+1:] == base
}

// String returns the pattern in the form of workshop.yaml, with A-labels.
func (p HostPattern) String() string {
	switch p.kind {
	case hostOne:
		return "*." + p.name
	case hostMany:
		return "**." + p.name
	}
	return p.name
}

// Name returns the name of a pattern without stars.
func (p HostPattern) Name() (Name, bool) {
	if p.kind != hostExact {
		return Name{}, false
	}
	return Name{p.name}, true
}

// Base returns the name without the stars, and how many labels more a name that matches
// has: none, one, or for ** at least one, which is -1.
func (p HostPattern) Base() (name string, more int) {
	switch p.kind {
	case hostOne:
		return p.name, 1
	case hostMany:
		return p.name, -1
	}
	return p.name, 0
}

// IsWildcard reports whether the pattern has stars.
func (p HostPattern) IsWildcard() bool { return p.kind == hostOne || p.kind == hostMany }

// IsZero reports whether the pattern is the zero value.
func (p HostPattern) IsZero() bool { return p.kind == hostNone }

// MarshalText writes the pattern as String does.
func (p HostPattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a pattern as [ParseHostPattern] does, but ignores
// [HostAnyTenant], which is checked with the rule; empty text is the zero pattern.
func (p *HostPattern) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*p = HostPattern{}
		return nil
	}
	q, err := ParseHostPattern(string(b))
	if err != nil && q.IsZero() {
		return err
	}
	*p = q
	return nil
}
