package request

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Limits of a target, in bytes and numbers: servers read longer ones in part.
const (
	maxTarget     = 8 << 10
	maxSegments   = 256
	maxParameters = 256
)

// Target is the path and the query of a request. Its text is what was parsed, byte for
// byte. The zero Target is none.
type Target struct {
	text     string
	segments []string // of the path, with the case of hexadecimal digits folded
	query    string   // without "?"
}

// Options widen what a target may be.
type Options struct {
	// EncodedSlash allows %2f inside a segment, as npm has it between scope and name.
	EncodedSlash bool
}

// ParseTarget reads a request's target, in origin form: "/repos/acme/app?per_page=100". An
// error says what of it could be read in two ways.
func ParseTarget(text string, o Options) (Target, error) {
	t := Target{text: text}
	path, query, _ := strings.Cut(text, "?")
	switch {
	case len(text) > maxTarget:
		return Target{}, fmt.Errorf("the target has %d bytes, more than %d", len(text), maxTarget)
	case !strings.HasPrefix(path, "/"):
		return Target{}, fmt.Errorf("the target doesn't begin with /: %s", shown(text))
	}
	if err := checkPath(path, o.EncodedSlash); err != nil {
		return Target{}, fmt.Errorf("the path has %w", err)
	}
	if !utf8.ValidString(decoded(path)) { // as %c0%ae, which some servers take for a dot
		return Target{}, errors.New("the path has bytes that are not UTF-8")
	}
	if err := checkQuery(query); err != nil {
		return Target{}, fmt.Errorf("the query has %w", err)
	}
	if n := strings.Count(query, "&"); n >= maxParameters {
		return Target{}, fmt.Errorf("the query has %d parameters, more than %d", n+1, maxParameters)
	}
	t.segments, t.query = strings.Split(path[1:], "/"), query
	if len(t.segments) > maxSegments {
		return Target{}, fmt.Errorf("the path has %d segments, more than %d", len(t.segments), maxSegments)
	}
	for i, s := range t.segments {
		s = foldHex(s)
		if s == "" && i < len(t.segments)-1 {
			return Target{}, errors.New("the path has // in it")
		}
		// Some hosts decode a slash before they part the path.
		for _, part := range strings.Split(s, "%2F") {
			switch {
			case part == "." || part == "..":
				return Target{}, fmt.Errorf("the path has a segment %q", part)
			case part == "" && s != "":
				return Target{}, fmt.Errorf("the path has %%2f at an end of a segment: %s", shown(s))
			}
		}
		t.segments[i] = s
	}
	return t, nil
}

// String is the target as it was parsed, and as it is sent.
func (t Target) String() string { return t.text }

// Path is the path as it was parsed, without the query.
func (t Target) Path() string {
	path, _, _ := strings.Cut(t.text, "?")
	return path
}

// Characters beside letters, digits and percent-encoding (RFC 3986, section 3.3 and 3.4).
// ";" begins parameters of a segment for some servers, and parts a query for others.
const (
	pathBytes  = "-._~!$&'()*+,=:@/"
	queryBytes = pathBytes + "?[]|"
)

// checkPath refuses what isn't a character of a path, encodings that servers undo before
// they look at it, and those that hide an ordinary character.
func checkPath(s string, slash bool) error {
	return checkBytes(s, pathBytes, func(decoded byte) bool {
		return decoded == '/' && slash || decoded >= ' ' && decoded != 0x7f && !alphanumeric(decoded) && strings.IndexByte("-._~/\\;%", decoded) < 0
	})
}

// checkQuery refuses what isn't a character of a query, and NUL, which ends texts.
func checkQuery(s string) error {
	return checkBytes(s, queryBytes, func(decoded byte) bool { return decoded != 0 })
}

func checkBytes(s, also string, mayEncode func(byte) bool) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case alphanumeric(c) || strings.IndexByte(also, c) >= 0:
		case c == '%' && i+2 < len(s) && hexadecimal(s[i+1]) && hexadecimal(s[i+2]):
			if decoded := unhex(s[i+1])<<4 | unhex(s[i+2]); !mayEncode(decoded) {
				return fmt.Errorf("the character %q as %s", decoded, s[i:i+3])
			}
			i += 2
		case c == '%':
			return errors.New("a % without two hexadecimal digits")
		default:
			return fmt.Errorf("the character %q", c)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func hexadecimal(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// foldHex writes hexadecimal digits of encodings in upper case: %2f and %2F are the same to
// every server (RFC 3986, section 6.2.2.1).
func foldHex(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:i+3], strings.ToUpper(s[i:i+3]))
			i += 2
		}
	}
	return string(b)
}

// shown is a text for an error: bounded, and nothing of it moves a cursor.
func shown(s string) string {
	return fmt.Sprintf("%q", clip.Bytes(s, 80))
}
