package request

import (
	"fmt"
	"slices"
	"strings"
)

// MaxRules bounds the rules of one line.
const MaxRules = 256

// Rule is one item of `requests`: "GET,HEAD /repos/acme/app/**". The zero Rule matches
// nothing.
type Rule struct {
	text    string
	methods []string // nil: every one
	path    pattern
}

// pattern is a path with wildcards: a segment "*" is any that isn't empty.
type pattern struct {
	segments []string
	below    bool // and all that is below, "/**"
}

// ParseRule reads a rule: methods with commas between them, a blank and a path; "*" in the
// place of the path, or alone, is everything. An error says what to write.
func ParseRule(text string) (Rule, error) {
	r := Rule{text: text}
	if text == "*" {
		r.path.below = true
		return r, nil
	}
	methods, path, ok := strings.Cut(text, " ")
	if !ok {
		return Rule{}, fmt.Errorf("%s has no methods: write \"GET,HEAD %s\"", shown(text), clipped(text))
	}
	for _, m := range strings.Split(methods, ",") {
		if err := CheckMethod(m); err != nil {
			return Rule{}, err
		}
		if slices.Contains(r.methods, m) {
			return Rule{}, fmt.Errorf("the method %s is named twice", m)
		}
		r.methods = append(r.methods, m)
	}
	slices.Sort(r.methods)
	var err error
	if r.path, err = parsePattern(path); err != nil {
		return Rule{}, err
	}
	return r, nil
}

func parsePattern(path string) (p pattern, err error) {
	if path == "*" {
		return pattern{below: true}, nil
	}
	if strings.ContainsAny(path, "?#") {
		return p, fmt.Errorf("%s has a query: rules are about paths, leave it out", shown(path))
	}
	text, below := strings.CutSuffix(path, "/**")
	if below && text == "" {
		return pattern{below: true}, nil
	}
	t, err := ParseTarget(text, Options{EncodedSlash: true})
	if err != nil {
		return p, fmt.Errorf("%s can't be a path: %w", shown(path), err)
	}
	if below && t.segments[len(t.segments)-1] == "" {
		return p, fmt.Errorf("%s can't be a path: the path has // in it", shown(path))
	}
	for _, s := range t.segments {
		if strings.Contains(s, "*") && s != "*" {
			return p, fmt.Errorf("%s: a * stands for a whole segment, and /** at the end for all below", shown(path))
		}
	}
	return pattern{t.segments, below}, nil
}

// CheckMethod refuses what can't be the method of a rule: RFC 9110 has methods in capital
// letters, CONNECT and TRACE are for proxies and for echoes, and PRI begins HTTP/2.
func CheckMethod(m string) error {
	switch {
	case m == "CONNECT" || m == "TRACE" || m == "PRI":
		return fmt.Errorf("the method %s is never allowed", m)
	case m == "" || len(m) > 20 || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return fmt.Errorf("%s is not a method: write GET, POST or another in capital letters, with commas and no blanks between them", shown(m))
	}
	return nil
}

// String is the rule as it was written.
func (r Rule) String() string { return r.text }

// Match reports whether the rule has a request.
func (r Rule) Match(method string, t Target) bool {
	return CheckMethod(method) == nil && (r.methods == nil && r.text != "" || slices.Contains(r.methods, method)) && r.path.match(t.segments)
}

func (p pattern) match(segments []string) bool {
	if len(segments) < len(p.segments) || !p.below && len(segments) != len(p.segments) {
		return false
	}
	for i, s := range p.segments {
		if !hasSegment(s, segments[i]) {
			return false
		}
	}
	return true
}

// hasSegment reports whether a segment of a rule has one of a target, or of another rule. A *
// has none with an encoded slash: some hosts decode it, and have two segments then.
func hasSegment(s, other string) bool {
	return s == other || s == "*" && other != "" && !strings.Contains(other, "%2F")
}

// within reports whether every path of p is one of o.
func (p pattern) within(o pattern) bool {
	if p.below && !o.below || len(p.segments) < len(o.segments) || !o.below && len(p.segments) != len(o.segments) {
		return false
	}
	for i, s := range o.segments {
		if !hasSegment(s, p.segments[i]) {
			return false
		}
	}
	return true
}

// Rules are those of a line. None match nothing.
type Rules []Rule

// Match returns the first rule that has a request; not ok where none has.
func (r Rules) Match(method string, t Target) (Rule, bool) {
	i := slices.IndexFunc(r, func(x Rule) bool { return x.Match(method, t) })
	if i < 0 {
		return Rule{}, false
	}
	return r[i], true
}

// Within reports whether every request that r has is one that o has: the methods of a rule
// may be those of several of o, its paths must be those of one.
func (r Rules) Within(o Rules) bool {
	return !slices.ContainsFunc(r, func(x Rule) bool { return !x.within(o) })
}

func (r Rule) within(o Rules) bool {
	has := func(method string) bool {
		return slices.ContainsFunc(o, func(x Rule) bool {
			return (x.methods == nil || method != "" && slices.Contains(x.methods, method)) && r.path.within(x.path)
		})
	}
	if r.methods == nil {
		return r.text == "" || has("")
	}
	return !slices.ContainsFunc(r.methods, func(m string) bool { return !has(m) })
}

// Firsts are the first segments of the paths, sorted; not ok: any. Those of two endpoints for
// one host differ, so that a tool can tell by the path which is meant.
func (r Rules) Firsts() (firsts []string, ok bool) {
	for _, x := range r {
		if anyFirst(x.path) {
			return nil, false
		}
		firsts = append(firsts, x.path.segments[0])
	}
	slices.Sort(firsts)
	return slices.Compact(firsts), true
}

// anyFirst reports whether the first segment of a path may be any.
func anyFirst(p pattern) bool { return len(p.segments) == 0 || p.segments[0] == "*" }

// Texts are the rules as they were written.
func (r Rules) Texts() []string {
	out := make([]string, len(r))
	for i, x := range r {
		out[i] = x.text
	}
	return out
}

// MarshalText implements encoding.TextMarshaler.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler: see [ParseRule].
func (r *Rule) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRule(string(b))
	return err
}

func clipped(s string) string {
	s = shown(s)
	return s[1 : len(s)-1]
}
