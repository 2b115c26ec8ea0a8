package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/tokens"
	"github.com/llmdo/workshop/internal/session/audit"
)

// Redactor takes from texts what isn't for the eyes of those who read a bug report:
// tokens, values of variables and secrets, credentials and queries of URLs, names of
// hosts, of the machine and of its user.
type Redactor struct {
	values func(string) string
	names  []string          // host names to replace, as patterns, the longest first
	hosts  *regexp.Regexp    // any of them; nil: not compiled
	known  map[string]string // what stands for them
	home   string
	user   *regexp.Regexp // user and machine; nil: neither is known
}

// minValue is the length, in bytes, of the shortest value that is looked for: a shorter
// one, such as "true" or "8080", is in any text.
const minValue = 6

// Secrets are what a [Redactor] takes out.
type Secrets struct {
	Values              []string // of variables, of secrets
	Hosts               []string // names of hosts; wildcards stay as they are
	Home, User, Machine string
}

// NewRedactor makes one.
func NewRedactor(s Secrets) *Redactor {
	var values []string
	for _, v := range s.Values {
		if len(v) >= minValue {
			values = append(values, v)
		}
	}
	for _, v := range values { // in a text, its tokens and URLs are taken out before it
		if left := withoutURLs(masked(v)); left != v && len(strings.Trim(left, "*")) >= minValue {
			values = append(values, left)
		}
	}
	r := &Redactor{values: audit.Redactor(values), known: map[string]string{}, home: s.Home}
	for _, h := range s.Hosts {
		r.Host(h)
	}
	var who []string
	for _, name := range []string{s.User, s.Machine} {
		if len(name) > 2 && name != "root" && name != "localhost" && name != "user" {
			who = append(who, regexp.QuoteMeta(name))
		}
	}
	if len(who) > 0 {
		r.user = regexp.MustCompile(`\b(?:` + strings.Join(who, "|") + `)\b`)
	}
	return r
}

// Host is what stands for a host name: the same for the same. Addresses stay: a public
// one says little, and whether one is private is what reports are about.
func (r *Redactor) Host(name string) string {
	stars := ""
	for rest, ok := strings.CutPrefix(name, "*"); ok; rest, ok = strings.CutPrefix(name, "*") {
		stars, name = stars+"*", rest
	}
	if rest, ok := strings.CutPrefix(name, "."); ok && stars != "" {
		stars, name = stars+".", rest
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		host, port = name, ""
	} else {
		port = ":" + port
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "" || host == "localhost" {
		return stars + name
	}
	if r.known[host] == "" {
		r.known[host] = fmt.Sprintf("host-%d", len(r.known)+1)
	}
	// One word is in any text.
	if quoted := regexp.QuoteMeta(host); strings.Contains(host, ".") && !slices.Contains(r.names, quoted) {
		r.names, r.hosts = append(r.names, quoted), nil
		sortfunc.Stable(r.names, func(a, b string) int { return len(b) - len(a) })
	}
	return stars + r.known[host] + port
}

// urlParts are user information and query of URLs.
var urlParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)(?:[^\s/@"'<>]*@)?([^\s"'<>?]*)(\?[^\s"'<>]*)?`)
})

func masked(s string) string { return string(tokens.Mask([]byte(s))) }

// withoutURLs takes user information and queries out of URLs.
func withoutURLs(s string) string {
	return urlParts().ReplaceAllStringFunc(s, func(found string) string {
		m := urlParts().FindStringSubmatch(found)
		if m[3] != "" {
			m[3] = "?" + audit.Replacement
		}
		return m[1] + m[2] + m[3]
	})
}

// Text redacts a text. Values come after tokens and URLs: a repository can plant one that
// is a part of them.
func (r *Redactor) Text(s string) string {
	s = r.values(withoutURLs(masked(s)))
	if len(r.names) > 0 {
		if r.hosts == nil {
			r.hosts = regexp.MustCompile(`(?i)\b(?:` + strings.Join(r.names, "|") + `)\b`)
		}
		s = r.hosts.ReplaceAllStringFunc(s, func(found string) string { return r.known[strings.ToLower(found)] })
	}
	if len(r.home) > 1 {
		s = strings.ReplaceAll(s, r.home, "~")
	}
	if r.user != nil {
		s = r.user.ReplaceAllString(s, "NAME")
	}
	return s
}
