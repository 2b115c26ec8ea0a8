package firewall

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"
)

//go:generate go run gensuffix.go

//go:embed suffixes.txt.gz
var packedSuffixes string

// suffixes is the Public Suffix List (publicsuffix.org, Mozilla Public License
// 2.0), one rule a line with its labels reversed, sorted, followed by its
// section: i for ICANN's, p for the private one, and a ! for exceptions. It is
// unpacked, in a millisecond, by the first policy with a wildcard: whole, it
// is 160 kB in every program of ours.
var suffixes = sync.OnceValue(func() string {
	r, err := gzip.NewReader(strings.NewReader(packedSuffixes))
	if err != nil {
		panic(err) // what gensuffix.go wrote
	}
	var list strings.Builder
	if _, err := io.Copy(&list, r); err != nil {
		panic(err) // gzip has a check sum
	}
	return list.String()
})

// unregistered are top-level names below which nobody can register, though no
// registry lists them: RFC 6761, RFC 6762 and ICANN's
// resolutions of 2018 (corp, home, mail) and 2024 (internal).
const unregistered = " corp example home internal invalid local localhost mail test "

// checkWildcard refuses a wildcard that reaches names of owners that have
// nothing to do with each other.
func checkWildcard(input string, p HostPattern) *HostError {
	section, suffix := wildcardSection(p)
	switch section {
	case 'i':
		e := hostError(input, HostPublicSuffix, fmt.Sprintf("%q would allow names of anybody: %s is a suffix under which a registry sells names", input, suffix), "list the names, such as api.example."+p.name)
		e.Suffix = suffix
		return e
	case 'p':
		e := hostError(input, HostAnyTenant, fmt.Sprintf("%q would allow names of anybody: everyone can have a name under %s", input, suffix), fmt.Sprintf("list the names, or write {host: %q, any_tenant: true} if every tenant is meant", p))
		e.Suffix = suffix
		return e
	}
	return nil
}

// wildcardSection returns the section of the first public suffix that the
// wildcard reaches across, 0 if there is none.
func wildcardSection(p HostPattern) (section byte, suffix string) {
	if s := suffixSection(p.name); s != 0 {
		return s, p.name
	}
	if p.kind == hostMany {
		return suffixBelow(p.name)
	}
	return 0, ""
}

// suffixSection tells of which section name is a public suffix, 0 if it is
// none. A top-level name that nobody lists counts as private: a registry may
// open it tomorrow.
func suffixSection(name string) byte {
	rev := reverseLabels(name)
	if section, exception := findSuffix(rev); section != 0 {
		if exception {
			return 0
		}
		return section
	}
	parent := strings.LastIndexByte(rev, '.')
	if parent < 0 {
		if strings.Contains(unregistered, " "+name+" ") {
			return 0
		}
		return 'p'
	}
	section, _ := findSuffix(rev[:parent] + ".*")
	return section
}

// RegisteredDomain returns the domain of a name in lower case that somebody registered: its
// longest public suffix with one label more. It is empty for a suffix and for what is no
// name. An address is the caller's to know.
func RegisteredDomain(name string) string {
	if name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return ""
	}
	for domain := ""; ; {
		_, parent, more := strings.Cut(name, ".")
		if _, exception := findSuffix(reverseLabels(name)); exception {
			return name
		}
		if !more || suffixSection(name) != 0 {
			return domain
		}
		domain, name = name, parent
	}
}

// suffixBelow returns a public suffix that ends in "."+name, ICANN's first.
func suffixBelow(name string) (section byte, suffix string) {
	list, prefix := suffixes(), reverseLabels(name)+"."
	for at := searchSuffix(list, prefix); at < len(list); {
		line, next := suffixLine(list, at)
		rule, mark, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(rule, prefix) {
			break
		}
		if len(mark) == 1 && (section == 0 || mark == "i" && section != 'i') {
			section, suffix = mark[0], reverseLabels(rule)
		}
		at = next
	}
	return section, suffix
}

func findSuffix(rev string) (section byte, exception bool) {
	list := suffixes()
	at := searchSuffix(list, rev+" ")
	if at == len(list) {
		return 0, false
	}
	line, _ := suffixLine(list, at)
	rule, mark, _ := strings.Cut(line, " ")
	if rule != rev || mark == "" {
		return 0, false
	}
	return mark[0], len(mark) > 1
}

// searchSuffix returns the offset of the first line that is not less than key.
func searchSuffix(list, key string) int {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := lo + (hi-lo)/2
		start := strings.LastIndexByte(list[:mid], '\n') + 1
		if start < lo {
			start = lo
		}
		line, next := suffixLine(list, start)
		if line < key {
			lo = next
		} else {
			hi = start
		}
	}
	return lo
}

func suffixLine(list string, at int) (line string, next int) {
	end := strings.IndexByte(list[at:], '\n')
	if end < 0 {
		return list[at:], len(list)
	}
	return list[at : at+end], at + end + 1
}

func reverseLabels(name string) string {
	var b strings.Builder
	b.Grow(len(name))
	for rest := name; ; {
		at := strings.LastIndexByte(rest, '.')
		b.WriteString(rest[at+1:])
		if at < 0 {
			return b.String()
		}
		b.WriteByte('.')
		rest = rest[:at]
	}
}
