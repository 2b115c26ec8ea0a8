package egressacl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// ValidGuard reports whether squid's user of the guard can have this name.
func ValidGuard(s string) bool {
	return s != "" && len(s) <= 64 && s != "REQUIRED" && s[0] != '-' &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-") == ""
}

// Squid writes the lines that squid.conf includes, for squid 5 or later. The last line
// refuses everything else.
//
// Of a name only squid's own answer of its resolver can be checked: a name with one
// address that is closed is closed.
func Squid(p *firewall.Policy, o Options) ([]byte, diag.List) {
	g := gather(p, ofSquid)
	if g.list.HasErrors() {
		return nil, g.list
	}
	name := ""
	if p != nil {
		name = p.Workshop
	}
	s := &squid{prefix: prefix(name)}
	s.head(name)
	s.never(g)
	s.denies(g.deny)
	s.names(g)
	s.ranges(g.ranges)
	s.guard(g, o.Guard)
	s.section("Everything else is refused.")
	s.line("http_access deny all")
	return []byte(s.b.String()), g.list
}

// maxPrefix leaves room in squid's 63 characters for the name of an ACL.
const maxPrefix = 40

// prefix begins the names of all ACLs: two files must not add to each other's.
func prefix(workshop string) string {
	s := "workshop"
	if workshop != "" {
		s = workshop
	}
	if len(s) > maxPrefix {
		sum := sha256.Sum256([]byte(s))
		s = s[:maxPrefix-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return s + "_"
}

type squid struct {
	b      strings.Builder
	prefix string
	n      int      // of the group
	denied []string // ACLs of denied addresses
}

func (s *squid) line(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

func (s *squid) section(text string) { s.line("\n# %s", text) }

// acl defines one, with a value a line where there are many.
func (s *squid) acl(name, kind string, values ...string) {
	if len(values) > 4 {
		for _, v := range values {
			s.line("acl %s%s %s %s", s.prefix, name, kind, v)
		}
		return
	}
	s.line("acl %s%s %s %s", s.prefix, name, kind, strings.Join(values, " "))
}

// access is a rule; names of ACLs have the prefix, but for all.
func (s *squid) access(verb string, names ...string) {
	names = slices.Clone(names)
	for i, n := range names {
		if rest, not := strings.CutPrefix(n, "!"); not {
			names[i] = "!" + s.prefix + rest
		} else {
			names[i] = s.prefix + n
		}
	}
	s.line("http_access %s %s", verb, strings.Join(names, " "))
}

func (s *squid) head(name string) {
	s.line("# What workshop %s may reach, for squid 5 or later: `workshop firewall export --for squid`.", plain(cmp.Or(name, "without a name")))
	s.line("# Include it in squid.conf after the lines that say who may ask, and write `http_access deny all` after it:")
	s.line("# squid allows what no line has if the last one denies, as it is where this file is empty.")
	s.section("Nothing is kept, and nothing says who asked.")
	s.line("cache deny all")
	s.line("via off")
	s.line("forwarded_for delete")
	s.line("strip_query_terms on")
	s.section("CONNECT and plain HTTP; no https:// or ftp:// that squid would speak itself.")
	s.acl("connect", "method", "CONNECT")
	s.acl("http", "proto", "HTTP")
	s.access("deny", "!connect", "!http")
	// A literal in the request. Of names squid looks the address up, so it comes first.
	s.acl("literal", "dstdom_regex -n", `^[0-9.]+$`, `:`)
}

// below matches a name and those below it.
func below(names []string) (out []string) {
	for _, n := range names {
		out = append(out, `(^|\.)`+escape(n)+`$`)
	}
	return out
}

func (s *squid) never(g *rules) {
	s.section("Names that no line opens.")
	s.acl("never_names", "dstdom_regex -n -i", below(firewall.UnopenableNames())...)
	s.access("deny", "never_names")
	if len(g.endpoints) > 0 {
		s.section("Hosts that workers reach at an endpoint alone.")
		s.acl("endpoints", "dstdomain -n", g.endpoints...)
		s.access("deny", "endpoints")
	}
}

// group is rules that differ in their names or ranges alone.
type group struct {
	rules []firewall.Rule
	id    string
}

// groups joins neighbours with the same ports.
func (s *squid) groups(kind string, rules []firewall.Rule) (out []*group) {
	for _, r := range rules {
		if n := len(out); n > 0 && out[n-1].rules[0].Private == r.Private && slices.Equal(out[n-1].rules[0].Ports, r.Ports) {
			out[n-1].rules = append(out[n-1].rules, r)
			continue
		}
		s.n++
		out = append(out, &group{[]firewall.Rule{r}, fmt.Sprintf("%s%d", kind, s.n)})
	}
	return out
}

// values of a group's ACL, each once.
func (x *group) values(of func(firewall.Rule) string) (out []string) {
	for _, r := range x.rules {
		if v := of(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// define writes the ACLs of a group, and returns the names of those that it has.
func (s *squid) define(x *group, kind string, of func(firewall.Rule) string) []string {
	s.section(positions(x.rules))
	s.acl(x.id, kind, x.values(of)...)
	names := []string{x.id}
	if ports := portWords(x.rules[0].Ports); ports != "" {
		s.acl(x.id+"_ports", "port", ports)
		names = append(names, x.id+"_ports")
	}
	return names
}

func exactly(r firewall.Rule) string    { return r.Host.String() }
func deniedName(r firewall.Rule) string { return "^" + denyPattern(r.Host) + "$" }
func openName(r firewall.Rule) string   { return "^" + allowPattern(r.Host) + "$" }
func byRange(r firewall.Rule) string    { return r.CIDR.String() }

const (
	ofName    = "dstdomain -n"
	ofPattern = "dstdom_regex -n -i"
)

// denies come before all that allows. Denied addresses are looked at later, of names that
// a line opens: what isn't open is never looked up.
func (s *squid) denies(deny []firewall.Rule) {
	var exact, wild, ranges []firewall.Rule
	for _, r := range deny {
		switch {
		case r.CIDR.IsValid():
			ranges = append(ranges, r)
		case r.Host.IsWildcard():
			wild = append(wild, r)
		default:
			exact = append(exact, r)
		}
	}
	for _, x := range s.groups("deny", exact) {
		s.access("deny", s.define(x, ofName, exactly)...)
	}
	for _, x := range s.groups("deny", wild) {
		s.access("deny", s.define(x, ofPattern, deniedName)...)
	}
	for _, x := range s.groups("deny", ranges) {
		names := s.define(x, "dst", byRange)
		for i := range names {
			names[i] = s.prefix + names[i]
		}
		slices.Reverse(names) // ports first: they need no look-up
		s.acl(x.id+"_both", "all-of", strings.Join(names, " "))
		s.denied = append(s.denied, s.prefix+x.id+"_both")
	}
	s.closed()
}

// closed defines which addresses are closed to names, to names that may have private ones,
// and to addresses.
func (s *squid) closed() {
	s.section("Addresses that no line opens: the machine's own, its link's, metadata services.")
	s.acl("never", "dst", texts(neverRanges())...)
	s.section("Addresses that a name has only with `private: true`, and never.")
	s.acl("private", "dst", texts(privateRanges())...)
	s.acl("benchmark", "dst", texts(benchmarkRanges())...)
	join := func(name string, of ...string) {
		for i := range of {
			of[i] = s.prefix + of[i]
		}
		s.acl(name, "any-of", strings.Join(append(of, s.denied...), " "))
	}
	join("closed", "never", "benchmark", "private")
	join("closed_private", "never", "benchmark")
	join("closed_range", "never")
}

func texts(all []netip.Prefix) (out []string) {
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

// names writes the lines of allow with a name: the first that has name and port decides.
func (s *squid) names(g *rules) {
	open := func(x *group, kind string, of func(firewall.Rule) string) {
		names, closed := s.define(x, kind, of), "closed"
		if x.rules[0].Private {
			closed = "closed_private"
		}
		s.access("deny", append(slices.Clone(names), closed)...)
		s.access("allow", names...)
	}
	for _, x := range s.groups("allow", g.exact) {
		open(x, ofName, exactly)
	}
	if len(g.wild) == 0 {
		return
	}
	s.section("No wildcard reaches a name that is so long, nor a resolver over HTTPS.")
	s.acl("no_wildcard", ofPattern, append([]string{"^" + tooLong + "$"}, below(resolvers(g.wild))...)...)
	s.access("deny", "no_wildcard")
	for _, x := range s.groups("allow", g.wild) {
		open(x, ofPattern, openName)
	}
}

func (s *squid) ranges(ranges []firewall.Rule) {
	for _, x := range s.groups("allow", ranges) {
		names := append([]string{"literal"}, s.define(x, "dst", byRange)...)
		s.access("deny", append(slices.Clone(names), "closed_range")...)
		s.access("allow", names...)
	}
}

// guard lets the guard through, which connects to addresses that it has checked.
func (s *squid) guard(g *rules, user string) {
	if user == "" || len(g.guard) == 0 {
		return
	}
	s.section("The workshop's guard asks for addresses that it looked up and checked itself.")
	s.acl("guard", "proxy_auth", user)
	let := func(id, closed string, ports []firewall.PortRange) {
		names := []string{"connect", "literal"}
		if words := portWords(firewall.NormalizePorts(ports)); words != "" {
			s.acl(id, "port", words)
			names = append(names, id)
		}
		s.access("allow", append(names, "!"+closed, "guard")...)
	}
	let("guard_ports", "closed", g.guard)
	if len(g.private) > 0 {
		let("guard_private", "closed_private", g.private)
	}
}
