package proxy

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// In no stretch of time as long as the window more is taken than the limit, and
// free says when there is something again.
func TestWindow(t *testing.T) {
	type taken struct {
		at time.Duration
		n  int64
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, per := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		w := window{limit: 1000, per: per}
		var all []taken
		var now time.Duration
		first := 0
		for range 20_000 {
			now += time.Duration(rnd.Int64N(int64(per / 40)))
			if rnd.IntN(500) == 0 {
				now += 3 * per
			}
			wait := w.free(now)
			n := w.take(now, 1+rnd.Int64N(300))
			if (n == 0) != (wait > 0) || wait > per+per/slots {
				t.Fatalf("%s: %d taken, free said %s", per, n, wait)
			}
			if wait > 0 {
				c := w
				if c.take(now+wait-1, 1) != 0 || c.take(now+wait, 1) != 1 {
					t.Fatalf("%s: %s isn't when something is free", per, wait)
				}
			}
			all = append(all, taken{now, n})
			sum := int64(0)
			for all[first].at < now-per {
				first++
			}
			for _, x := range all[first:] {
				sum += x.n
			}
			if sum > w.limit {
				t.Fatalf("%s: %d within the window", per, sum)
			}
		}
		if w.take(now+per+per/slots, 1000) != 1000 {
			t.Errorf("%s: what is old still counts", per)
		}
	}
}

// A budget is its rule's through every policy, and no other rule's.
func TestBudgetsOfRules(t *testing.T) {
	rule := func(cidr, ports, upload string) firewall.Rule {
		r := firewall.Rule{CIDR: netip.MustParsePrefix(cidr), Line: "workshop.yaml:7"}
		var err error
		if r.Ports, err = firewall.ParsePorts(ports); err == nil && upload != "" {
			r.Upload, err = firewall.ParseBudget(upload)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var b Budgets
	one, moved := rule("198.51.100.0/24", "443", "1K/h"), rule("198.51.100.0/24", "443", "1K/h")
	moved.Line = "workshop.yaml:9"
	if n := b.of(&one).take(2000); n != 1024 {
		t.Errorf("%d taken", n)
	}
	if d := b.admit(firewall.Decision{Allowed: true, Rule: &moved}); d.Allowed || d.Reason != events.ReasonUpload || d.Suggest != "" || d.Rule != &moved {
		t.Errorf("the same line elsewhere: %+v", d)
	}
	for _, r := range []firewall.Rule{rule("198.51.100.0/25", "443", "1K/h"), rule("198.51.100.0/24", "80", "1K/h"), rule("198.51.100.0/24", "443", "2K/h"), rule("198.51.100.0/24", "443", "")} {
		if d := b.admit(firewall.Decision{Allowed: true, Rule: &r}); !d.Allowed {
			t.Errorf("%+v: %+v", r, d)
		}
	}
	if d := b.admit(firewall.Decision{Allowed: true}); !d.Allowed {
		t.Error("no rule has no budget")
	}
	p := &policy.Room{RoomPolicy: firewall.RoomPolicy{Allow: []firewall.Rule{moved, rule("198.51.100.0/25", "443", "1K/h"), rule("::/0", "1", "")}}}
	s := b.State(p)
	if len(s) != 2 || s[0].Used != 1024 || s[0].Line != "workshop.yaml:9" || s[0].Target != "198.51.100.0/24" || s[1].Used != 0 || s[0].Upload != one.Upload {
		t.Errorf("%+v", s)
	}
}
