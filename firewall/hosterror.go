package firewall

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// HostProblem is why a host was refused. The zero value is invalid.
type HostProblem int

// The problems of hosts.
const (
	HostEmpty        HostProblem = iota + 1
	HostSyntax                   // a character or label that is not allowed in a name
	HostLength                   // RFC 1035 §2.3.4
	HostAddress                  // an IP literal in any notation; addresses are written as cidr
	HostPort                     // "name:22" where only a name is allowed
	HostURL                      // "https://name/…"
	HostIDN                      // not a valid internationalised name
	HostWildcard                 // a star in another place than the first label
	HostPublicSuffix             // *.com: a wildcard on a suffix of a registry, never allowed
	HostAnyTenant                // *.github.io: anyone can register there; allowed with any_tenant
)

// HostError is why text is not a host, and what to write instead.
type HostError struct {
	Input   string
	Problem HostProblem
	// Suffix is the public suffix for HostPublicSuffix and HostAnyTenant.
	Suffix  string
	Message string // one line, lower case, no final period
	Hint    string // what to do; may be empty
}

// Error returns the message.
func (e *HostError) Error() string { return e.Message }

func hostError(input string, p HostProblem, message, hint string) *HostError {
	return &HostError{Input: input, Problem: p, Message: message, Hint: hint}
}

// characterError explains the first character of s that is not allowed in a name, by
// what the writer probably meant.
func characterError(s string, at int) *HostError {
	switch c := s[at]; {
	case strings.Contains(s, "://"):
		host := s[strings.Index(s, "://")+3:]
		host, _, _ = strings.Cut(host, "/")
		return hostError(s, HostURL, fmt.Sprintf("%q is a URL, not a host", s), "write "+host)
	case isAddress(s):
		return hostError(s, HostAddress, fmt.Sprintf("%q is an address, not a name", s), addressHint(s))
	case c == '/':
		return hostError(s, HostURL, fmt.Sprintf("%q has a path; the network is allowed by host and port only", s), "write "+s[:at])
	case c == '@':
		return hostError(s, HostURL, fmt.Sprintf("%q has user information, which is not part of a host", s), "write "+s[at+1:])
	case c == ':':
		return hostError(s, HostPort, fmt.Sprintf("%q has a port, but only a host is allowed here", s), fmt.Sprintf("write {host: %s, port: %s}", s[:at], s[at+1:]))
	case c == '*':
		return hostError(s, HostWildcard, fmt.Sprintf("%q has a star in the wrong place; a wildcard is the whole first label", s), "write *.NAME (one label more) or **.NAME (one or more)")
	case c == '_':
		return hostError(s, HostSyntax, fmt.Sprintf("%q has an underscore, which host names don't have (RFC 1123 §2.1)", s), "")
	case c >= 0x80:
		return hostError(s, HostIDN, fmt.Sprintf("%q has characters outside ASCII; names travel as A-labels (xn--…, RFC 5890)", s), "")
	default:
		return hostError(s, HostSyntax, fmt.Sprintf("%q has the character %s, which host names don't have (RFC 1123 §2.1)", s, strconv.QuoteRune(rune(c))), "")
	}
}

func isAddress(s string) bool {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	_, err := netip.ParseAddr(s)
	if err != nil {
		_, err = netip.ParsePrefix(s)
	}
	return err == nil
}

func addressHint(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	p, err := netip.ParsePrefix(s)
	if a, failed := netip.ParseAddr(s); failed == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return "write the address as {cidr: ADDRESS/BITS, port: PORT}"
	}
	p = p.Masked()
	if class, ok := ClassifyRange(p); ok && !class.Openable() {
		return fmt.Sprintf("leave it out: %s addresses stay closed whatever a rule says (B26)", class)
	}
	return fmt.Sprintf("write {cidr: %q, port: 443}", p)
}
