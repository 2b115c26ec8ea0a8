package files

import "strings"

// wild is a pattern as git's wildmatch.c reads it: bytes, *, ?, classes, and
// between slashes ** for any number of directories. The zero value matches the
// empty name.
type wild struct {
	parts []part
	never bool // a class that isn't closed, a backslash at the end
}

// part is a part of a path, between two slashes.
type part struct {
	deep   bool // **
	some   bool // … and a backslash before the slash: git then wants a directory at least
	tokens []token
}

type token struct {
	kind byte // the byte itself where class is nil, or one of the below
	any  bool // ?
	star bool
	set  *[256]bool
}

// parseWild reads a pattern. Without slashes (path is false) it is one for a
// name, and ** is the same as *.
func parseWild(pattern string, path bool) wild {
	var w wild
	var p part
	end := func() {
		if path && len(p.tokens) > 1 && allStars(p.tokens) {
			p = part{deep: true}
		}
		w.parts = append(w.parts, p)
		p = part{}
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '/' && path:
			end()
		case c == '*':
			p.tokens = append(p.tokens, token{star: true})
		case c == '?':
			p.tokens = append(p.tokens, token{any: true})
		case c == '[':
			set, n := parseClass(pattern[i:])
			if set == nil {
				return wild{never: true}
			}
			p.tokens = append(p.tokens, token{set: set})
			i += n - 1
		case c == '\\':
			if i++; i == len(pattern) {
				return wild{never: true}
			}
			if pattern[i] == '/' && path {
				end()
				last := &w.parts[len(w.parts)-1]
				last.some = last.deep
				continue
			}
			p.tokens = append(p.tokens, token{kind: pattern[i]})
		default:
			p.tokens = append(p.tokens, token{kind: c})
		}
	}
	end()
	return w
}

func allStars(tokens []token) bool {
	for _, t := range tokens {
		if !t.star {
			return false
		}
	}
	return true
}

// match compares a path with the pattern. The last ** and, in a part, the last
// * take more until the rest fits: so the time is bounded by the product of the
// lengths.
func (w *wild) match(name string) bool {
	if w.never {
		return false
	}
	names := strings.Split(name, "/")
	p, n, deep, resume := 0, 0, -1, 0
	for n < len(names) {
		switch {
		case p < len(w.parts) && w.parts[p].deep:
			if p == len(w.parts)-1 {
				return true // and there is a name for it
			}
			if w.parts[p].some {
				n++
			}
			deep, resume = p, n
			p++
		case p < len(w.parts) && matchPart(w.parts[p].tokens, names[n]):
			p, n = p+1, n+1
		case deep >= 0:
			resume++
			p, n = deep+1, resume
		default:
			return false
		}
	}
	return p == len(w.parts)
}

func matchPart(tokens []token, name string) bool {
	t, n, star, resume := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case t < len(tokens) && tokens[t].star:
			star, resume = t, n
			t++
		case t < len(tokens) && tokens[t].matches(name[n]):
			t, n = t+1, n+1
		case star >= 0:
			resume++
			t, n = star+1, resume
		default:
			return false
		}
	}
	return allStars(tokens[t:])
}

func (t *token) matches(c byte) bool {
	switch {
	case t.star:
		return false
	case t.any:
		return true
	case t.set != nil:
		return t.set[c]
	}
	return t.kind == c
}

// parseClass reads a class, [a-z], [!a], [[:alpha:]_], and how long it is. It is
// nil where git finds it malformed. A ] that comes first is one of its bytes.
func parseClass(s string) (set *[256]bool, n int) {
	set = new([256]bool)
	i := 1
	negated := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negated {
		i++
	}
	previous := byte(0) // where a range may begin
	for first := true; first || i < len(s) && s[i] != ']'; first = false {
		if i >= len(s) {
			return nil, 0
		}
		c := s[i]
		switch {
		case c == '\\':
			if i++; i == len(s) {
				return nil, 0
			}
			c = s[i]
			set[c] = true
		case c == '-' && previous != 0 && i+1 < len(s) && s[i+1] != ']':
			if i++; s[i] == '\\' {
				if i++; i == len(s) {
					return nil, 0
				}
			}
			for b := int(previous); b <= int(s[i]); b++ {
				set[b] = true
			}
			c = 0
		case c == '[' && i+1 < len(s) && s[i+1] == ':':
			end := strings.IndexByte(s[i+2:], ']')
			if end < 0 {
				return nil, 0
			}
			name := s[i+2 : i+2+end]
			if !strings.HasSuffix(name, ":") {
				set['['] = true // a set like any other
				break
			}
			if !addNamed(set, strings.TrimSuffix(name, ":")) {
				return nil, 0
			}
			i += 2 + end
			c = 0
		default:
			set[c] = true
		}
		previous = c
		i++
	}
	if i >= len(s) {
		return nil, 0
	}
	if negated {
		for b := range set {
			set[b] = !set[b]
		}
	}
	set['/'] = false
	return set, i + 1
}

// named are the classes of POSIX in the C locale, as ranges.
var named = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

func addNamed(set *[256]bool, name string) bool {
	ranges, ok := named[name]
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			set[b] = true
		}
	}
	return ok
}

// literalLength is how many bytes of a pattern mean themselves.
func literalLength(pattern string) int {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return i
	}
	return len(pattern)
}
