package firewall

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// maxPorts bounds the ranges of one list: more than anybody writes, but few enough for
// a small ruleset.
const maxPorts = 1024

// MaxRedirects is the number of port ranges that the policy of one room may
// have besides 80 and 443, so that a ruleset is one netlink message.
const MaxRedirects = 256

// AllPorts is every TCP port.
var AllPorts = PortRange{1, 65535}

// ParsePorts reads "22", "8000-8010" or several of them separated by commas
// and returns them sorted and joined.
func ParsePorts(s string) ([]PortRange, error) {
	if strings.Count(s, ",") >= maxPorts {
		return nil, fmt.Errorf("more than %d ports in one list", maxPorts)
	}
	var out []PortRange
	for part := range strings.SplitSeq(s, ",") {
		r, err := parsePortRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return NormalizePorts(out), nil
}

// PortsMeant returns the list that was probably meant by one that ParsePorts
// refuses: numbers for names of services, and no /tcp. It is empty if none is known.
func PortsMeant(s string) string {
	parts := strings.Split(s, ",")
	for i, part := range parts {
		switch part = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(part)), "/tcp"); part {
		case "http":
			part = "80"
		case "https":
			part = "443"
		case "ssh":
			part = "22"
		}
		parts[i] = part
	}
	meant := strings.Join(parts, ",")
	if _, err := ParsePorts(meant); err != nil || meant == s {
		return ""
	}
	return meant
}

func parsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	a, err := parsePort(first)
	if err != nil {
		return PortRange{}, err
	}
	if !isRange {
		return PortRange{a, a}, nil
	}
	b, err := parsePort(last)
	if err != nil {
		return PortRange{}, err
	}
	if b < a {
		return PortRange{}, fmt.Errorf("the port range %q ends before it begins; write %d-%d", s, b, a)
	}
	return PortRange{a, b}, nil
}

func parsePort(s string) (uint16, error) {
	// No signs, blanks, leading zeros or other bases: one notation only.
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789") != "" || (s[0] == '0' && s != "0") {
		return 0, fmt.Errorf("%q is not a port; write a number from 1 to 65535 or a range such as 8000-8010", clip.Bytes(s, shown))
	}
	n, _ := strconv.Atoi(s)
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %d is out of range; ports are 1 to 65535", n)
	}
	return uint16(n), nil
}

// shown is how much of an invalid value a message quotes, in bytes.
const shown = 40

// NormalizePorts returns the ranges sorted, with overlapping and adjacent ones
// joined. Invalid ranges are dropped.
func NormalizePorts(in []PortRange) []PortRange {
	sorted := slices.DeleteFunc(slices.Clone(in), func(r PortRange) bool { return !r.Valid() })
	sort.Slice(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		return a.First < b.First || a.First == b.First && a.Last < b.Last
	})
	var out []PortRange
	for _, r := range sorted {
		if n := len(out); n > 0 && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// SubtractPorts returns the ports of a that are not in b, sorted and joined.
func SubtractPorts(a, b []PortRange) []PortRange {
	var out []PortRange
	b = NormalizePorts(b)
	for _, r := range NormalizePorts(a) {
		first := int(r.First)
		for _, x := range b {
			if int(x.Last) < first || x.First > r.Last {
				continue
			}
			if int(x.First) > first {
				out = append(out, PortRange{uint16(first), x.First - 1})
			}
			first = int(x.Last) + 1
		}
		if first <= int(r.Last) {
			out = append(out, PortRange{uint16(first), r.Last})
		}
	}
	return out
}

// HasPort reports whether one of the ranges contains the port.
func HasPort(ports []PortRange, port uint16) bool {
	for _, r := range ports {
		if r.Contains(port) {
			return true
		}
	}
	return false
}

// CountPorts returns how many ports there are in ranges that don't overlap.
func CountPorts(ports []PortRange) (n int) {
	for _, r := range ports {
		n += int(r.Last) - int(r.First) + 1
	}
	return n
}

// FormatPorts is the reverse of [ParsePorts].
func FormatPorts(ports []PortRange) string {
	s := make([]string, len(ports))
	for i, r := range ports {
		s[i] = r.String()
	}
	return strings.Join(s, ",")
}

// Valid reports whether 1 ≤ First ≤ Last.
func (r PortRange) Valid() bool { return r.First >= 1 && r.First <= r.Last }

// Contains reports whether port is in the range.
func (r PortRange) Contains(port uint16) bool { return port >= r.First && port <= r.Last }

// String returns "22" or "8000-8010".
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return strconv.Itoa(int(r.First)) + "-" + strconv.Itoa(int(r.Last))
}

// MarshalText writes the range as String does.
func (r PortRange) MarshalText() ([]byte, error) {
	if !r.Valid() {
		return nil, fmt.Errorf("port range %d-%d is not valid", r.First, r.Last)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads "22" or "8000-8010".
func (r *PortRange) UnmarshalText(b []byte) error {
	var err error
	*r, err = parsePortRange(string(b))
	return err
}
