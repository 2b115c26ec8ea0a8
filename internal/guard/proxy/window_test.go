package proxy

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/kept"
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

// However often the guard is killed, no more than the limit is sent in any
// stretch of time as long as the window, and a crash costs no more than what was
// reserved.
func TestWindowOutlivesTheGuard(t *testing.T) {
	type sent struct {
		at time.Duration
		n  int64
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int64{100, 64_000, 1 << 40} {
		budget := firewall.Budget{Bytes: limit, Per: time.Hour}
		part := min(limit/reservePart, reserveMost)
		w := newWindow(budget)
		var record [][2]int64
		var recordAt int64
		var all []sent
		records, crashes := 0, 0
		now := 1000 * time.Hour
		for range 20_000 {
			now += time.Duration(rnd.Int64N(int64(time.Hour / 300)))
			n := 1 + rnd.Int64N(max(2, part/3))
			if rnd.IntN(30) == 0 {
				n = 1 + rnd.Int64N(limit/3)
			}
			if w.reserve(now, n) {
				record, recordAt = w.recorded(now), w.at
				records++
			}
			all = append(all, sent{now, w.take(now, n)})
			if rnd.IntN(100) == 0 {
				crashes++
				w.advance(now)
				was := w
				w = newWindow(budget)
				if err := w.restore(now, recordAt, record); err != nil {
					t.Fatal(err)
				}
				// Now, and whenever something is free again.
				with, without := was, w
				for at := now; at < now+time.Hour+2*time.Minute; at += time.Minute {
					with.advance(at)
					without.advance(at)
					if lost := without.used - with.used; lost < 0 || lost > part {
						t.Fatalf("limit %d: a crash costs %d after %s, want 0 to %d", limit, lost, at-now, part)
					}
				}
			}
			sum := int64(0)
			for len(all) > 0 && all[0].at < now-time.Hour {
				all = all[1:]
			}
			for _, x := range all {
				sum += x.n
			}
			if sum > limit {
				t.Fatalf("limit %d: %d within the window", limit, sum)
			}
		}
		t.Logf("limit %d: %d records of 20000, %d crashes", limit, records, crashes)
	}
}

// What no guard recorded is refused.
func TestRestoreRefuses(t *testing.T) {
	const now = 100 * time.Hour // slot 6000 of an hour
	for _, tt := range []struct {
		name string
		at   int64
		sent [][2]int64
		ok   bool
	}{
		{"nothing", 6000, nil, true},
		{"all of it", 6000, [][2]int64{{5940, 400}, {6000, 600}}, true},
		{"of long ago", 3, [][2]int64{{0, 1}, {3, 1}}, true},
		{"of a time to come", 6001, nil, false},
		{"of no time", -1, nil, false},
		{"before the window", 6000, [][2]int64{{5939, 1}}, false},
		{"after its time", 5999, [][2]int64{{6000, 1}}, false},
		{"not rising", 6000, [][2]int64{{5999, 1}, {5999, 1}}, false},
		{"less than nothing", 6000, [][2]int64{{6000, -1}}, false},
		{"above the limit", 6000, [][2]int64{{5999, 600}, {6000, 401}}, false},
		{"overflow", 6000, [][2]int64{{5999, 1}, {6000, 1<<63 - 1}}, false},
	} {
		w := newWindow(firewall.Budget{Bytes: 1000, Per: time.Hour})
		if err := w.restore(now, tt.at, tt.sent); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is recorded is recorded before it may be sent, and nothing is sent that
// can't be; the next guard has it, for the same rule alone.
func TestBudgetsOutliveTheGuard(t *testing.T) {
	rule := &firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Ports: []firewall.PortRange{{First: 443, Last: 443}}, Upload: firewall.Budget{Bytes: 6400, Per: time.Hour}}
	var recorded []kept.Spent
	var broken error
	records := 0
	b := Budgets{Record: func(s []kept.Spent) error {
		recorded = s
		records++
		return broken
	}}
	if n := b.of(rule).take(50); n != 50 || records != 1 || recorded[0].Sent[0][1] != 100 {
		t.Errorf("%d taken, recorded %d times: %+v", n, records, recorded)
	}
	if n := b.of(rule).take(50); n != 50 || records > 2 { // 2: the minute ended in between
		t.Errorf("%d taken, recorded %d times: %+v", n, records, recorded)
	}
	var next Budgets
	if err := next.Restore(recorded); err != nil {
		t.Fatal(err)
	}
	if used := next.of(rule).used(); used < 100 || used > 200 {
		t.Errorf("the next guard has %d, want 100", used)
	}
	other := *rule
	other.Ports = []firewall.PortRange{{First: 80, Last: 80}}
	if used := next.of(&other).used(); used != 0 {
		t.Errorf("another rule has %d", used)
	}
	if broken = errors.New("no memory"); b.of(rule).take(5000) != 0 {
		t.Error("bytes may be sent that aren't recorded")
	}
	broken = nil
	if n := b.of(rule).take(1000); n != 1000 {
		t.Errorf("%d taken", n)
	}
	p := &firewall.RoomPolicy{Room: "room"}
	for i := range firewall.MaxBudgets {
		r := *rule
		r.Upload.Bytes += int64(i)
		p.Allow = append(p.Allow, r)
	}
	if err := b.Fits(p, false); err != nil {
		t.Error(err)
	}
	p.Allow[0].Ports = other.Ports // what the rule spent is recorded beside it
	if err := b.Fits(p, false); err == nil || b.Fits(p, true) != nil {
		t.Errorf("one too many: %v, after a reset %v", err, b.Fits(p, true))
	}
	if err := b.Reset(); err != nil || len(recorded) != 0 || b.of(rule).used() != 0 {
		t.Errorf("%v, recorded %+v", err, recorded)
	}
}

func BenchmarkTake(b *testing.B) {
	rule := &firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Upload: firewall.Budget{Bytes: 1 << 50, Per: 24 * time.Hour}}
	for _, name := range []string{"in memory", "recorded"} {
		b.Run(name, func(b *testing.B) {
			var all Budgets
			if name == "recorded" {
				var file kept.File
				if err := file.Open(nil, nil); err != nil {
					b.Fatal(err)
				}
				all.Record = file.Budgets
			}
			x := all.of(rule)
			b.SetBytes(32 << 10)
			for b.Loop() {
				x.take(32 << 10)
			}
		})
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
	if d := b.Admit(firewall.Decision{Allowed: true, Rule: &moved}); d.Allowed || d.Reason != events.ReasonUpload || d.Suggest != "" || d.Rule != &moved {
		t.Errorf("the same line elsewhere: %+v", d)
	}
	for _, r := range []firewall.Rule{rule("198.51.100.0/25", "443", "1K/h"), rule("198.51.100.0/24", "80", "1K/h"), rule("198.51.100.0/24", "443", "2K/h"), rule("198.51.100.0/24", "443", "")} {
		if d := b.Admit(firewall.Decision{Allowed: true, Rule: &r}); !d.Allowed {
			t.Errorf("%+v: %+v", r, d)
		}
	}
	if d := b.Admit(firewall.Decision{Allowed: true}); !d.Allowed {
		t.Error("no rule has no budget")
	}
	p := &policy.Room{RoomPolicy: firewall.RoomPolicy{Allow: []firewall.Rule{moved, rule("198.51.100.0/25", "443", "1K/h"), rule("::/0", "1", "")}}}
	s := b.State(p)
	if len(s) != 2 || s[0].Used != 1024 || s[0].Line != "workshop.yaml:9" || s[0].Target != "198.51.100.0/24" || s[1].Used != 0 || s[0].Upload != one.Upload {
		t.Errorf("%+v", s)
	}
}
