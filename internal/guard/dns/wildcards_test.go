package dns

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// budget is a Wildcards with a clock, and decisions for its tests.
type budget struct {
	testing.TB
	Wildcards
	clock time.Time
}

func newBudget(t testing.TB) *budget {
	b := &budget{TB: t, clock: time.Unix(1_000_000, 0)}
	b.Wildcards.now = func() time.Time { return b.clock }
	return b
}

// under asks for a name that a pattern allows; "" is learning.
func (b *budget) under(pattern, s string) firewall.Decision {
	b.Helper()
	d := firewall.Decision{Allowed: true, Reason: firewall.ReasonLearned, Suggest: s}
	if pattern != "" {
		p, err := firewall.ParseHostPattern(pattern)
		if err != nil && p.IsZero() {
			b.Fatal(err)
		}
		d = firewall.Decision{Allowed: true, Reason: firewall.ReasonAllowed, Rule: &firewall.Rule{Host: p, Line: "workshop.yaml:9", Ports: firewall.DefaultAllowPorts()}}
	}
	return b.Admit(name(b, s), d)
}

// D5: random labels under a wildcard trip the budget, the same names don't, and
// with time it works again.
func TestWildcardBudget(t *testing.T) {
	for _, pattern := range []string{"*.example.org", "**.example.org", ""} {
		b := newBudget(t)
		count := func(from, n int) (allowed int) {
			for i := range n {
				s := fmt.Sprintf("n%d.example.org", from+i)
				d := b.under(pattern, s)
				if d.Allowed {
					allowed++
				} else if d.Reason != events.ReasonWildcard || d.Suggest != s || pattern != "" && d.Rule.Line != "workshop.yaml:9" {
					t.Fatalf("%q: %+v", pattern, d)
				}
			}
			return allowed
		}
		if n := count(0, 1000); n != wildBurst {
			t.Errorf("%q: %d of 1000 new names", pattern, n)
		}
		if n := count(0, wildBurst); n != wildBurst {
			t.Errorf("%q: %d of the known names", pattern, n)
		}
		b.clock = b.clock.Add(5*time.Second + 100*time.Millisecond)
		if n := count(2000, 100); n != 5 {
			t.Errorf("%q: %d new names after 5 s", pattern, n)
		}
		b.clock = b.clock.Add(time.Minute)
		if n := count(3000, 100); n != wildBurst {
			t.Errorf("%q: %d new names after a minute", pattern, n)
		}
		b.clock = b.clock.Add(24 * time.Hour)
		if n := count(4000, 100); n != wildBurst {
			t.Errorf("%q: %d new names after a day", pattern, n)
		}
	}
}

// Each pattern has a budget of its own; exact lines and mode open have none.
func TestWildcardBudgetIsOfThePattern(t *testing.T) {
	b := newBudget(t)
	for i := range 200 {
		s := fmt.Sprintf("n%d.example.org", i)
		b.under("*.example.org", s)
		if d := b.under(s, s); !d.Allowed {
			t.Fatalf("an exact line: %+v", d)
		}
		if d := b.Admit(name(t, s), firewall.Decision{Allowed: true, Reason: firewall.ReasonOpen}); !d.Allowed {
			t.Fatalf("open: %+v", d)
		}
	}
	if d := b.under("*.example.net", "a.example.net"); !d.Allowed {
		t.Errorf("another pattern: %+v", d)
	}
	denied := firewall.Decision{Reason: firewall.ReasonName, Suggest: "a.example.org"}
	if d := b.Admit(name(t, "a.example.org"), denied); d != denied {
		t.Errorf("a denied name: %+v", d)
	}
}

// What is remembered is bounded, and forgetting gives no name back for nothing.
func TestWildcardMemory(t *testing.T) {
	b := newBudget(t)
	admitted := 0
	for i := range 3 * maxWildKnown {
		b.clock = b.clock.Add(500 * time.Millisecond)
		if b.under("*.example.org", fmt.Sprintf("n%d.example.org", i)).Allowed {
			admitted++
		}
		b.under("*.example.org", "page.example.org") // in use all the time
	}
	x := b.rules[name2pattern(t, "*.example.org")]
	if len(x.known) != maxWildKnown {
		t.Errorf("%d names are remembered", len(x.known))
	}
	if most := wildBurst + 3*maxWildKnown/2; admitted > most {
		t.Errorf("%d names were let through, at most %d should be", admitted, most)
	}
	x.tokens = 0
	if !b.under("*.example.org", "page.example.org").Allowed {
		t.Error("a name in use was forgotten")
	}
	if b.under("*.example.org", "n0.example.org").Allowed {
		t.Error("a forgotten name is free")
	}
	for i := range maxWildRules + 10 {
		b.clock = b.clock.Add(time.Minute)
		if !b.under(fmt.Sprintf("*.z%d.example.org", i), fmt.Sprintf("a.z%d.example.org", i)).Allowed {
			t.Fatalf("pattern %d", i)
		}
	}
	if len(b.rules) > maxWildRules {
		t.Errorf("%d patterns are remembered", len(b.rules))
	}
}

func name2pattern(t testing.TB, s string) firewall.HostPattern {
	p, err := firewall.ParseHostPattern(s)
	if err != nil && p.IsZero() {
		t.Fatal(err)
	}
	return p
}

// Names in use fit: hashes of content networks, regions of clouds, punycode.
// Longer ones need a line of their own.
func TestWildcardLengths(t *testing.T) {
	sha := fmt.Sprintf("%x", sha1.Sum(nil))
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"**.cdn.example.org", sha + ".cdn.example.org", true},
		{"**.cdn.example.org", "docker-images-prod." + sha[:32] + ".cdn.example.org", true},
		{"**.cdn.example.org", sha + "0.cdn.example.org", false},
		{"**.cdn.example.org", "a." + sha + "0.cdn.example.org", false},
		{"**.amazonaws.com", "prod-us-east-1-starport-layer-bucket.s3.dualstack.ap-southeast-2.amazonaws.com", true},
		{"**.example.org", "xn--bcher-kva.example.org", true},
		{"**.example.org", strings.Repeat(sha[:35]+".", 3) + "example.org", true},      // 119
		{"**.example.org", strings.Repeat(sha[:35]+".", 3) + "ab.example.org", false},  // 122
		{"*." + sha + "00.example.org", "a." + sha + "00.example.org", true},           // the line's own label
		{sha + sha[:20] + ".example.org", sha + sha[:20] + ".example.org", true},       // an exact line
		{"", sha + ".example.org", true},                                               // learning
		{"", sha + "0.example.org", false},                                             //
		{"", strings.Repeat("a.", 55) + "example.org", false},                          // 121
		{"*.example.org", strings.Repeat("a", maxWildLabel) + ".example.org", true},    //
		{"*.example.org", strings.Repeat("a", maxWildLabel+1) + ".example.org", false}, //
	} {
		if d := newBudget(t).under(c.pattern, c.name); d.Allowed != c.want {
			t.Errorf("%s under %q: %+v", c.name, c.pattern, d)
		}
	}
}
