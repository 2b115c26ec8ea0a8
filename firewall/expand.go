package firewall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Expand returns a copy of the policy with the templates of its resolvers, proxy and
// rules expanded from the environment. Generated files contain `${NAME:?}` and
// `${NAME:-default}` and never a value (B45); `$$` is a literal dollar. An unset or
// empty variable without a default, and a value that isn't a host, range, address or
// URL, are errors; all of them are returned.
//
// A rule's template may expand to "name:port" if the file allows it; the ports must be
// those that the ruleset was compiled with.
func Expand(p *Policy, lookup func(string) (string, bool)) (*Policy, error) {
	q := *p
	q.Resolvers = slices.Clone(p.Resolvers)
	q.Rooms = slices.Clone(p.Rooms)
	var problems []error
	add := func(where string, err error) {
		problems = append(problems, fmt.Errorf("policy: %s: %w", where, err))
	}

	kept := q.Resolvers[:0]
	for _, s := range q.Resolvers {
		v, err := expandText(s, lookup)
		if err == nil && v != "" {
			if _, err = ParseResolver(v); err == nil {
				kept = append(kept, v)
			}
		}
		if err != nil {
			add("resolvers", err)
		}
	}
	q.Resolvers = kept
	var err error
	if q.Proxy, err = expandText(p.Proxy, lookup); err == nil {
		err = checkProxy(q.Proxy)
	}
	if err != nil {
		add("proxy", err)
	}
	if q.Proxy == "" && p.Proxy != "" { // its variable is empty: there is none
		q.ProxyCredential = ""
	}
	for i := range q.Rooms {
		r := &q.Rooms[i]
		where := "room " + r.Room
		r.Allow = expandRules(r.Allow, false, lookup, func(err error) { add(where+": allow", err) })
		r.Deny = expandRules(r.Deny, true, lookup, func(err error) { add(where+": deny", err) })
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return &q, nil
}

func expandRules(in []Rule, deny bool, lookup func(string) (string, bool), problem func(error)) []Rule {
	out := slices.Clone(in)
	for i := range out {
		if out[i].Template == "" {
			continue
		}
		text, err := expandText(out[i].Template, lookup)
		r := out[i]
		if err == nil {
			r, err = expandRule(r, text)
		}
		if err == nil {
			err = r.check(deny)
		}
		if err != nil {
			problem(fmt.Errorf("%s: %w", clip.Bytes(in[i].Template, shown), err))
			continue
		}
		out[i] = r
	}
	return out
}

// Filled is a rule with the value of its template when the workshop was loaded; the rule
// itself where it has none. Where the value isn't what a rule can have, the rule has no
// target.
func (r Rule) Filled() Rule {
	if r.Template == "" {
		return r
	}
	filled, _ := expandRule(r, r.Value) // the loader has reported it
	filled.Template = ""
	return filled
}

// Filled is a policy with the values that its rules' templates had when the workshop was
// loaded.
func (p *Policy) Filled() *Policy {
	q := *p
	q.Rooms = slices.Clone(p.Rooms)
	for i := range q.Rooms {
		for _, list := range []*[]Rule{&q.Rooms[i].Allow, &q.Rooms[i].Deny} {
			*list = slices.Clone(*list)
			for j, r := range *list {
				(*list)[j] = r.Filled()
			}
		}
	}
	return &q
}

// ValuesDigest identifies what the templates of a policy's rules stand for in the same
// policy with values: the SHA-256 of those targets, in hexadecimal; empty where no rule
// has a template.
func ValuesDigest(p, filled *Policy) string {
	var b strings.Builder
	for i, r := range p.Rooms {
		f := filled.Rooms[i]
		for _, x := range []struct {
			name       string
			in, values []Rule
		}{{"allow", r.Allow, f.Allow}, {"deny", r.Deny, f.Deny}} {
			for j := range x.in {
				if x.in[j].Template != "" {
					fmt.Fprintf(&b, "%s %s %d %s\n", r.Room, x.name, j, x.values[j].Target())
				}
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func expandRule(r Rule, text string) (Rule, error) {
	r.Template = ""
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return r, fmt.Errorf("%q is not a range of addresses", clip.Bytes(text, shown))
		}
		r.CIDR = p
		return r, nil
	}
	if host, ports, ok := strings.Cut(text, ":"); ok {
		got, err := ParsePorts(ports)
		if err != nil {
			return r, err
		}
		if !slices.Equal(got, NormalizePorts(r.Ports)) {
			return r, fmt.Errorf("the value has port %s, but the ruleset was compiled for %s: compile again", FormatPorts(got), FormatPorts(r.Ports))
		}
		text = host
	}
	h, err := ParseHostPattern(text)
	if err != nil && h.IsZero() {
		return r, err
	}
	r.Host = h
	return r, nil
}

// expandText expands one string.
func expandText(s string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		s = s[at+1:]
		if strings.HasPrefix(s, "$") {
			b.WriteByte('$')
			s = s[1:]
			continue
		}
		value, rest, err := expandVariable(s, lookup)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = rest
	}
	if b.Len() > 4096 {
		return "", errors.New("the value is longer than 4096 bytes")
	}
	return b.String(), nil
}

// expandVariable parses "{NAME:?…}" or "{NAME:-…}" after a dollar.
func expandVariable(s string, lookup func(string) (string, bool)) (value, rest string, err error) {
	end := strings.IndexByte(s, '}')
	if !strings.HasPrefix(s, "{") || end < 0 {
		return "", "", fmt.Errorf("template %q is not ${NAME:?} or ${NAME:-default}", clip.Bytes("$"+s, shown))
	}
	name, tail, ok := strings.Cut(s[1:end], ":")
	if !ok || !validVariable(name) || tail == "" || (tail[0] != '?' && tail[0] != '-') {
		return "", "", fmt.Errorf("template %q is not ${NAME:?} or ${NAME:-default}", clip.Bytes("$"+s[:end+1], shown))
	}
	rest = s[end+1:]
	if v, ok := lookup(name); ok && v != "" {
		return v, rest, nil
	}
	if tail[0] == '?' {
		return "", "", fmt.Errorf("the variable %s is not set", name)
	}
	return strings.ReplaceAll(tail[1:], "$$", "$"), rest, nil
}

func validVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// ParseResolver parses the address of an upstream resolver, "198.51.100.53" or
// "[2001:db8::53]:5353"; the port is 53 if absent.
func ParseResolver(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.AddrPortFrom(a.Unmap(), 53), nil
	}
	if ap, err := netip.ParseAddrPort(s); err == nil && ap.Port() != 0 && ap.Addr().Zone() == "" {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	return netip.AddrPort{}, fmt.Errorf("resolver %q is not an address with optional port, such as 198.51.100.53 or [2001:db8::53]:5353", clip.Bytes(s, shown))
}

func checkProxy(s string) error {
	if s == "" {
		return nil
	}
	_, err := ParseProxy(s)
	return err
}
