package egressacl

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// Ports as patterns: each of all 65535 is matched as the list has it.
func TestPortPattern(t *testing.T) {
	for _, text := range []string{"1-65535", "80", "8000-8010", "1-9", "9-10", "95-105,443", "1024-65535", "999-1001,20000-29999,65535"} {
		ports, err := firewall.ParsePorts(text)
		if err != nil {
			t.Fatal(err)
		}
		re := regexp.MustCompile("^" + portPattern(ports) + "$")
		for n := range 70000 {
			want := n > 0 && n < 65536 && firewall.HasPort(ports, uint16(n))
			if re.MatchString(strconv.Itoa(n)) != want {
				t.Fatalf("%s: %d is matched: %v (%s)", text, n, !want, re)
			}
		}
	}
}

// Patterns of names match what the guard's do, as long as the guard looks them up.
func TestNamePatterns(t *testing.T) {
	for _, pattern := range []string{"api.example.org", "*.example.org", "**.example.org", "*.b.example.org"} {
		p, err := firewall.ParseHostPattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		allow, deny := regexp.MustCompile("^("+allowPattern(p)+")$"), regexp.MustCompile("^("+denyPattern(p)+")$")
		for _, name := range []string{"example.org", "api.example.org", "apixexample.org", "a.b.example.org", "x.a.b.example.org", "b.example.org", "example.org.evil.net", "xexample.org", strings.Repeat("a", 40) + ".example.org"} {
			n, err := firewall.ParseName(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := allow.MatchString(name); got != p.Match(n) {
				t.Errorf("%s of %s: allowed is %v", name, pattern, got)
			}
			if got := deny.MatchString(name); got != p.Match(n) {
				t.Errorf("%s of %s: denied is %v", name, pattern, got)
			}
		}
		if p.IsWildcard() {
			for _, name := range []string{strings.Repeat("a", 41) + "." + strings.TrimLeft(pattern, "*."), "a_b." + strings.TrimLeft(pattern, "*."), "-a." + strings.TrimLeft(pattern, "*."), "." + strings.TrimLeft(pattern, "*.")} {
				if allow.MatchString(name) {
					t.Errorf("%s of %s is allowed", name, pattern)
				}
			}
		}
	}
}
