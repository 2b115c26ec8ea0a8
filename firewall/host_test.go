package firewall

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

func TestParseName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for in, want := range map[string]string{
		"example.org":                  "example.org",
		"API.Example.ORG":              "api.example.org",
		"db":                           "db",
		"xn--bcher-kva.example":        "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":        "xn--bcher-kva.example",
		"r3---sn-a5mekn.example.org":   "r3---sn-a5mekn.example.org",
		"1.example":                    "1.example",
		"0x7f.example":                 "0x7f.example",
		"127.0.0.1.example.org":        "127.0.0.1.example.org",
		long + "." + long + "." + long: long + "." + long + "." + long,
	} {
		if n, err := ParseName(in); err != nil || n.String() != want {
			t.Errorf("%q: %q, %v", in, n, err)
		}
	}
	for in, problem := range map[string]HostProblem{
		"":                               HostEmpty,
		"example.org.":                   HostSyntax,
		"example..org":                   HostSyntax,
		".example.org":                   HostSyntax,
		".":                              HostSyntax,
		"..":                             HostSyntax,
		"-a.example":                     HostSyntax,
		"a-.example":                     HostSyntax,
		"a b":                            HostSyntax,
		"a\x00.example.org":              HostSyntax,
		"example.org\n":                  HostSyntax,
		"example.org%00":                 HostSyntax,
		"a_b.example.org":                HostSyntax,
		"example.org:443":                HostPort,
		"user@example.org":               HostURL,
		"example.org/x":                  HostURL,
		"https://example.org/x":          HostURL,
		"*.example.org":                  HostWildcard,
		"a.*.org":                        HostWildcard,
		"bücher.example":                 HostIDN, // only a policy may write it so
		"example。org":                    HostIDN,
		"ＥＸＡＭＰＬＥ.org":                    HostIDN,
		"xn--a.example":                  HostIDN,
		"xn--.example":                   HostSyntax,
		"xn--80ak6aa92e-.example":        HostSyntax,
		"xn--Bcher-Kva-.example":         HostSyntax,
		"xn--abc-.example":               HostSyntax,
		"127.0.0.1":                      HostAddress,
		"[::1]":                          HostAddress,
		"::1":                            HostAddress,
		"[::ffff:127.0.0.1]":             HostAddress,
		"fe80::1%eth0":                   HostAddress,
		"10.0.0.0/8":                     HostAddress,
		"2130706433":                     HostAddress,
		"0x7f000001":                     HostAddress,
		"0x7f.1":                         HostAddress,
		"0x":                             HostAddress,
		"0177.0.0.1":                     HostAddress,
		"127.1":                          HostAddress,
		"1.2.3.4.5":                      HostAddress,
		"example.0x1f":                   HostAddress,
		strings.Repeat("a", 64):          HostLength,
		strings.Repeat("a.", 127):        HostLength,
		strings.Repeat("abc.", 64) + "a": HostLength,
	} {
		n, err := ParseName(in)
		var e *HostError
		if !errors.As(err, &e) || !n.IsZero() {
			t.Errorf("%q was accepted as %q", in, n)
		} else if e.Problem != problem {
			t.Errorf("%q: problem %d (%v), want %d", in, e.Problem, e, problem)
		}
	}
}

func TestParseHostPattern(t *testing.T) {
	for in, want := range map[string]string{
		"Example.org":             "example.org",
		"*.Example.org":           "*.example.org",
		"**.example.org":          "**.example.org",
		"*.Bücher.example":        "*.xn--bcher-kva.example",
		"faß.example":             "xn--fa-hia.example", // not fass: no transitional mapping
		"münchen。example":         "xn--mnchen-3ya.example",
		"*.internal":              "*.internal",
		"**.corp":                 "**.corp",
		"*.city.kawasaki.jp":      "*.city.kawasaki.jp", // an exception of the list
		"*.user.github.io":        "*.user.github.io",
		"github.io":               "github.io",
		"*.compute.amazonaws.com": "*.compute.amazonaws.com",
	} {
		if p, err := ParseHostPattern(in); err != nil || p.String() != want {
			t.Errorf("%q: %q, %v", in, p, err)
		}
	}
	for in, c := range map[string]struct {
		problem HostProblem
		suffix  string
	}{
		"*":                  {HostPublicSuffix, ""},
		"**":                 {HostPublicSuffix, ""},
		"*.com":              {HostPublicSuffix, "com"},
		"**.co.uk":           {HostPublicSuffix, "co.uk"},
		"*.Co.UK":            {HostPublicSuffix, "co.uk"},
		"*.x.ck":             {HostPublicSuffix, "x.ck"},
		"**.kawasaki.jp":     {HostPublicSuffix, "*.kawasaki.jp"},
		"**.рф":              {HostPublicSuffix, "xn--p1ai"},
		"*.github.io":        {HostAnyTenant, "github.io"},
		"**.github.io":       {HostAnyTenant, "github.io"},
		"*.s3.amazonaws.com": {HostAnyTenant, "s3.amazonaws.com"},
		"**.amazonaws.com":   {HostAnyTenant, ""}, // reaches across s3.amazonaws.com and others
		"*.nobody-has-this":  {HostAnyTenant, "nobody-has-this"},
		".example.org":       {HostWildcard, ""},
		"***.example.org":    {HostWildcard, ""},
		"*example.org":       {HostWildcard, ""},
		"a.*.example.org":    {HostWildcard, ""},
		"*.*.example.org":    {HostWildcard, ""},
		"*.127.0.0.1":        {HostAddress, ""},
		"10.0.0.1":           {HostAddress, ""},
		"*.":                 {HostPublicSuffix, ""},
		"**.example.org.":    {HostSyntax, ""},
		"github.com:22":      {HostPort, ""},
		"a\u200d.example":    {HostIDN, ""},
		"*." + strings.Repeat("abcd.", 50) + "abc": {HostLength, ""},
	} {
		p, err := ParseHostPattern(in)
		var e *HostError
		if !errors.As(err, &e) {
			t.Errorf("%q was accepted as %q", in, p)
			continue
		}
		if e.Problem != c.problem || (c.suffix != "" && e.Suffix != c.suffix) {
			t.Errorf("%q: problem %d, suffix %q (%v), want %v", in, e.Problem, e.Suffix, e, c)
		}
		if usable := !p.IsZero(); usable != (e.Problem == HostAnyTenant) {
			t.Errorf("%q: pattern %q with %v", in, p, e)
		}
		if e.Message == "" || strings.HasSuffix(e.Message, ".") {
			t.Errorf("%q: message %q", in, e.Message)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no string
	}{
		{"example.org", "example.org EXAMPLE.org", "a.example.org org xexample.org"},
		{"*.example.org", "a.example.org xn--bcher-kva.example.org", "example.org a.b.example.org xexample.org aexample.org"},
		{"**.example.org", "a.example.org a.b.example.org a.b.c.example.org", "example.org xexample.org a.example.com"},
	} {
		p := pattern(t, c.pattern)
		for s := range strings.FieldsSeq(c.yes) {
			if !p.Match(name(t, s)) {
				t.Errorf("%s doesn't match %s", p, s)
			}
		}
		for s := range strings.FieldsSeq(c.no) {
			if p.Match(name(t, s)) {
				t.Errorf("%s matches %s", p, s)
			}
		}
		if p.Match(Name{}) || (HostPattern{}).Match(name(t, "example.org")) {
			t.Errorf("%s: a zero value matches", p)
		}
	}
}

func TestHostPatternCovers(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		want         bool
	}{
		{"a.example", "a.example", true},
		{"a.example", "b.example", false},
		{"a.example", "*.a.example", false},
		{"*.a.example", "b.a.example", true},
		{"*.a.example", "a.example", false},
		{"*.a.example", "c.b.a.example", false},
		{"*.a.example", "*.a.example", true},
		{"*.a.example", "*.b.a.example", false},
		{"*.a.example", "**.a.example", false},
		{"**.a.example", "*.a.example", true},
		{"**.a.example", "**.a.example", true},
		{"**.a.example", "**.b.a.example", true},
		{"**.a.example", "*.b.a.example", true},
		{"**.a.example", "c.b.a.example", true},
		{"**.a.example", "a.example", false},
		{"**.a.example", "**.xa.example", false},
		{"**.b.a.example", "**.a.example", false},
	} {
		if got := pattern(t, c.outer).Covers(pattern(t, c.inner)); got != c.want {
			t.Errorf("%s covers %s: %v", c.outer, c.inner, got)
		}
	}
}

// TestSuffixes: every rule of the embedded list is found, in its section.
func TestSuffixes(t *testing.T) {
	n := 0
	for s := bufio.NewScanner(strings.NewReader(suffixes())); s.Scan(); n++ {
		rule, mark, _ := strings.Cut(s.Text(), " ")
		section, exception := findSuffix(rule)
		if section != mark[0] || exception != (len(mark) > 1) {
			t.Fatalf("%q: found %c, %v", s.Text(), section, exception)
		}
	}
	if n < 9000 {
		t.Errorf("the list has %d rules only", n)
	}
	for name, want := range map[string]byte{"com": 'i', "co.uk": 'i', "foo.ck": 'i', "www.ck": 0, "github.io": 'p', "github.com": 0, "test": 0, "zzzz": 'p', "a.zzzz": 0} {
		if got := suffixSection(name); got != want {
			t.Errorf("%s: section %q, want %q", name, got, want)
		}
	}
}

// The domain that somebody registered is the one that golang.org/x/net/publicsuffix knows,
// for names at and below each rule.
func TestRegisteredDomain(t *testing.T) {
	names := []string{"", ".", "com", ".com", "a.com.", "a..com", "localhost", "a.localhost", "b.a.corp.internal", "a.zzzz", "b.a.www.ck", "b.a.foo.ck"}
	for s := bufio.NewScanner(strings.NewReader(suffixes())); s.Scan(); {
		rule, _, _ := strings.Cut(s.Text(), " ")
		name := strings.ReplaceAll(reverseLabels(rule), "*", "star")
		names = append(names, name, "a."+name, "b.a."+name, "c.b.a."+name)
	}
	for _, name := range names {
		want, err := publicsuffix.EffectiveTLDPlusOne(name)
		if err != nil {
			want = ""
		}
		if got := RegisteredDomain(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// FuzzHostPattern: a pattern reads back as itself, what it covers it matches,
// and whatever is accepted as a name has one form only.
func FuzzHostPattern(f *testing.F) {
	for _, s := range []string{"example.org", "*.example.org", "**.a.example.org", "a.example.org", "bücher.example", "*.github.io", "127.0.0.1", "0x7f.1", "a..b", "xn--bcher-kva.example", "*", "faß.de", "x\x00y", "[::1]", "*.*.a"} {
		f.Add(s, "**.example.org", "b.a.example.org")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		p, err := ParseHostPattern(a)
		if p.IsZero() {
			if err == nil {
				t.Fatalf("%q: neither pattern nor error", a)
			}
			return
		}
		if again, _ := ParseHostPattern(p.String()); again != p {
			t.Fatalf("%q: %q reads back as %q", a, p, again)
		}
		n, err := ParseName(c)
		if err == nil {
			if s := n.String(); strings.ToLower(c) != s || strings.ContainsAny(s, ":@/%\x00 ") || strings.HasSuffix(s, ".") {
				t.Fatalf("%q became the name %q", c, s)
			}
			if p.kind == hostExact && p.Match(n) != (p.String() == n.String()) {
				t.Fatalf("%q and %q", p, n)
			}
		}
		q, _ := ParseHostPattern(b)
		if q.IsZero() {
			return
		}
		if p.Covers(q) {
			if !n.IsZero() && q.Match(n) && !p.Match(n) {
				t.Fatalf("%s covers %s, but only that matches %s", p, q, n)
			}
			if q.Covers(p) && p != q {
				t.Fatalf("%s and %s cover each other", p, q)
			}
		}
	})
}
