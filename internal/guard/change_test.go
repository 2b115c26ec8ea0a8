package guard

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// newGuard is a guard that doesn't run: it has its policy, and no room.
func newGuard(t testing.TB, p firewall.Policy) *Guard {
	t.Helper()
	p.Version = firewall.PolicyVersion
	g, err := New(Config{Policy: &p, Digest: policy.Digest{File: firewall.Digest(&p)}, Sockets: t.TempDir(), ResolvConf: "/nonexistent", Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// liveChange reads "[@room] [deny] rule" as a test writes it.
func liveChange(t testing.TB, s string) (c firewall.Live) {
	t.Helper()
	for {
		word, rest, ok := strings.Cut(s, " ")
		switch {
		case ok && word == "deny":
			c.Deny = true
		case ok && strings.HasPrefix(word, "@"):
			c.Room = word[1:]
		default:
			c.Rule = rule(t, s, 1)
			return c
		}
		s = rest
	}
}

func threeRooms(t testing.TB) firewall.Policy {
	p := restricted(t, "allowed.example.org", "ssh.example.org:22")
	p.Rooms[0].Deny = []firewall.Rule{rule(t, "**.evil.example:1-65535", 40), rule(t, "half.example:80", 41), rule(t, "10.0.0.0/8:1-65535", 42)}
	p.Rooms = append(p.Rooms,
		firewall.RoomPolicy{Room: "closed", Mode: firewall.None, Workers: []string{"carol"}},
		firewall.RoomPolicy{Room: "wide", Mode: firewall.Open, Workers: []string{"dave"}})
	return p
}

// TestChanges: what a running guard takes, what it refuses and in which words,
// and what it allows then. A deny line always wins.
func TestChanges(t *testing.T) {
	type check struct {
		room, name string
		port       uint16
		want       bool
	}
	for name, c := range map[string]struct {
		changes []string // each a request of its own
		refused string   // the last one, with this
		live    int
		checks  []check
	}{
		"allow":                    {changes: []string{"x.example"}, live: 1, checks: []check{{"room", "x.example", 443, true}, {"room", "x.example", 22, false}, {"closed", "x.example", 443, false}}},
		"allow in one room":        {changes: []string{"@wide x.example"}, live: 1, checks: []check{{"room", "x.example", 443, false}}},
		"deny":                     {changes: []string{"deny allowed.example.org:1-65535"}, live: 1, checks: []check{{"room", "allowed.example.org", 443, false}, {"wide", "allowed.example.org", 443, false}}},
		"deny, allow again":        {changes: []string{"deny x.example:1-65535", "x.example"}, live: 2, checks: []check{{"room", "x.example", 443, true}, {"wide", "x.example", 443, true}, {"wide", "x.example", 22, false}}},
		"deny, allow the file's":   {changes: []string{"@room deny allowed.example.org:443", "@room allowed.example.org"}, checks: []check{{"room", "allowed.example.org", 443, true}}},
		"deny, allow it privately": {changes: []string{"@room deny allowed.example.org:443", "@room allowed.example.org private"}, live: 1, checks: []check{{"room", "allowed.example.org", 443, true}}},
		"the same again":           {changes: []string{"x.example", "x.example", "x.example:443"}, live: 2, checks: []check{{"room", "x.example", 443, true}}},
		"allow, then deny":         {changes: []string{"x.example", "deny x.example:1-65535"}, live: 1, checks: []check{{"room", "x.example", 443, false}}},
		"denied by the file":       {changes: []string{"a.evil.example"}, refused: `a.evil.example:80,443 stays denied in room "room" by **.evil.example:1-65535 (workshop.yaml:40): deny always wins`},
		"a private one too":        {changes: []string{"a.evil.example private"}, refused: "workshop.yaml:40"},
		"denied range":             {changes: []string{"10.1.0.0/16:5432"}, refused: "workshop.yaml:42"},
		"denied in part":           {changes: []string{"half.example"}, live: 1, checks: []check{{"room", "half.example", 443, true}, {"room", "half.example", 80, false}}},
		"elsewhere":                {changes: []string{"@wide a.evil.example"}, live: 1},
		"denied live":              {changes: []string{"deny **.x.example:1-65535", "a.x.example"}, refused: "(workshop firewall", live: 1, checks: []check{{"room", "a.x.example", 443, false}}},
		"denied live for all":      {changes: []string{"deny x.example:1-65535", "@room x.example"}, refused: "deny always wins", live: 1},
		"unknown room":             {changes: []string{"@nobody x.example"}, refused: `there is no room "nobody"`},
		"no network":               {changes: []string{"@closed x.example"}, refused: `room "closed" has no network`},
		"port 53":                  {changes: []string{"x.example:53"}, refused: "port 53"},
		"metadata range":           {changes: []string{"169.254.169.254/32:80"}, live: 1}, // the never-list holds, see TestLiveAllow
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, threeRooms(t))
			for i, s := range c.changes {
				_, err := g.Do(t.Context(), control.Request{Op: control.OpChange, For: control.Duration(time.Hour), Changes: []firewall.Live{liveChange(t, s)}})
				want := ""
				if i == len(c.changes)-1 {
					want = c.refused
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Fatalf("%s: %v, want %q", s, err, want)
				}
			}
			if n := len(g.state().Live); n != c.live {
				t.Errorf("%d live changes, want %d: %+v", n, c.live, g.state().Live)
			}
			for _, x := range c.checks {
				n, _ := firewall.ParseName(x.name)
				if d := g.store.Room(x.room).Matcher.Name(n, x.port); d.Allowed != x.want {
					t.Errorf("%s: %s:%d: %+v", x.room, x.name, x.port, d)
				} else if d.Rule != nil && d.Reason == firewall.ReasonAllowed && strings.HasPrefix(d.Rule.Line, firewall.LiveLine) && !strings.Contains(d.Rule.Line, ", until 20") {
					t.Errorf("the line of a live rule is %q", d.Rule.Line)
				}
			}
		})
	}
}

// TestChangesAreAllOrNothing: one refused change, and none is there.
func TestChangesAreAllOrNothing(t *testing.T) {
	g := newGuard(t, threeRooms(t))
	_, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{
		liveChange(t, "x.example"), liveChange(t, "a.evil.example"), liveChange(t, "@nobody y.example"),
	}})
	if err == nil || !strings.Contains(err.Error(), "workshop.yaml:40") || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("not all problems at once: %v", err)
	}
	if s := g.state(); len(s.Live) != 0 || s.Generation != 1 {
		t.Errorf("%+v", s)
	}
}

// TestChangesAreBounded (B60): in number, in ports, in time.
func TestChangesAreBounded(t *testing.T) {
	g := newGuard(t, threeRooms(t))
	for name, r := range map[string]control.Request{
		"many":           {Op: control.OpChange, Changes: make([]firewall.Live, maxLive+1)},
		"none":           {Op: control.OpChange},
		"no target":      {Op: control.OpChange, Changes: make([]firewall.Live, 1)},
		"an end":         {Op: control.OpChange, Changes: []firewall.Live{{Rule: rule(t, "x.example", 1), Until: time.Now().Add(time.Hour)}}},
		"a template":     {Op: control.OpChange, Changes: []firewall.Live{{Rule: firewall.Rule{Template: "${X:?}", Ports: firewall.DefaultAllowPorts()}}}},
		"a preset":       {Op: control.OpChange, Changes: []firewall.Live{{Rule: firewall.Rule{Host: rule(t, "x.example", 1).Host, Preset: "npm", Ports: firewall.DefaultAllowPorts()}}}},
		"negative":       {Op: control.OpChange, For: -1, Changes: []firewall.Live{liveChange(t, "x.example")}},
		"for ever":       {Op: control.OpChange, For: 1 << 62, Changes: []firewall.Live{liveChange(t, "x.example")}},
		"learn for ever": {Op: control.OpLearn, For: 1 << 62},
		"learn nowhere":  {Op: control.OpLearn, For: 1 << 30, Rooms: []string{"nobody"}},
		"learn open":     {Op: control.OpLearn, For: 1 << 30, Rooms: []string{"wide"}},
		"learn closed":   {Op: control.OpLearn, For: 1 << 30, Rooms: []string{"closed"}},
		"no policy":      {Op: control.OpPolicy},
		"not a policy":   {Op: control.OpPolicy, Policy: []byte(`{"version":1,"workshop":"x","rooms":[],"x":1}`)},
		"explain nobody": {Op: control.OpExplain, Room: "nobody", Host: "x.example", Port: 443},
		"explain what":   {Op: control.OpExplain, Room: "room", Host: "a b", Port: 443},
		"explain where":  {Op: control.OpExplain, Room: "room", Host: "x.example"},
		"unknown":        {Op: "stop"},
	} {
		if _, err := g.Do(t.Context(), r); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	// More ranges of ports than a room redirects.
	var many []firewall.PortRange
	for i := range firewall.MaxRedirects {
		many = append(many, firewall.PortRange{First: uint16(10_000 + 2*i), Last: uint16(10_000 + 2*i)})
	}
	c := liveChange(t, "x.example")
	c.Rule.Ports = many
	if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{c}}); err == nil || !strings.Contains(err.Error(), "257 port ranges") {
		t.Errorf("too many ports: %v", err)
	}
	for i := range maxLive {
		c.Rule = rule(t, "n"+strings.Repeat("x", i%50)+".h"+strings.Repeat("y", i/50)+".example", 1)
		if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{c}}); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{liveChange(t, "z.example")}}); err == nil {
		t.Error("one change too many was taken")
	}
	if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Reset: true}); err != nil || len(g.state().Live) != 0 {
		t.Errorf("reset: %v", err)
	}
}

// TestReplaceIsBounded (B60): two policies that a guard has no memory for at the
// same time.
func TestReplaceIsBounded(t *testing.T) {
	p := threeRooms(t)
	g := newGuard(t, p)
	for len(p.Rooms[0].Allow) < maxReplace {
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, p.Rooms[0].Allow[0])
	}
	_, err := g.Do(t.Context(), control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)})
	if err == nil || !strings.Contains(err.Error(), "lines together") || g.state().Generation != 1 {
		t.Errorf("%v", err)
	}
}

// TestChangeIsBounded (B60): a large policy can be closed and forgotten live, not
// changed.
func TestChangeIsBounded(t *testing.T) {
	p := threeRooms(t)
	for len(p.Rooms[0].Allow) <= maxReplace/2 {
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, p.Rooms[0].Allow[0])
	}
	g := newGuard(t, p)
	for _, r := range []control.Request{
		{Op: control.OpChange, Changes: []firewall.Live{{Rule: p.Rooms[0].Allow[0]}}},
		{Op: control.OpLearn, For: control.Duration(time.Minute)},
	} {
		if _, err := g.Do(t.Context(), r); err == nil || !strings.Contains(err.Error(), "memory to change") {
			t.Errorf("%s: %v", r.Op, err)
		}
	}
	if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Reset: true}); err != nil {
		t.Error(err)
	}
}

// TestFixed: what a running guard can't change is refused, and named.
func TestFixed(t *testing.T) {
	g := newGuard(t, threeRooms(t))
	for want, change := range map[string]func(*firewall.Policy){
		"resolvers":                 func(p *firewall.Policy) { p.Resolvers = []string{"198.51.100.54"} },
		"proxy":                     func(p *firewall.Policy) { p.Proxy = "http://proxy.example:3128" },
		"published ports":           func(p *firewall.Policy) { p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 1}} },
		"rooms, modes or endpoints": func(p *firewall.Policy) { p.Rooms[0].Mode = firewall.Open },
		"workshop name":             func(p *firewall.Policy) { p.Workshop = "other" },
		"":                          func(p *firewall.Policy) { p.Rooms[0].Workers, p.Rooms[0].Allow = []string{"eve"}, nil },
	} {
		p := threeRooms(t)
		change(&p)
		_, err := g.Do(t.Context(), control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)})
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "workshop up")):
			t.Errorf("%s: %v", want, err)
		}
	}
	if w := g.store.Room("room").Workers; len(w) != 1 || w[0] != "eve" {
		t.Errorf("workers %v", w)
	}
}

// TestOver: an end comes at its time, and one that is zero never.
func TestOver(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name string
		end  time.Time
		want bool
	}{
		{"none", time.Time{}, false},
		{"to come", now.Add(1), false},
		{"now", now, true},
		{"past", now.Add(-time.Hour), true},
	} {
		if got := over(tt.end, now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	l := (&live{base: &firewall.Policy{}}).clone()
	l.changes = []firewall.Live{{Until: now.Add(time.Hour)}, {}}
	l.learning["room"] = now.Add(30 * time.Millisecond)
	if d := l.next(now); d != 30*time.Millisecond {
		t.Errorf("wait %s", d)
	}
	delete(l.learning, "room")
	if d := l.next(now); d != clockCheck {
		t.Errorf("the clock is looked at after %s", d)
	}
	if c, _ := l.expire(now.Add(2 * time.Hour)); len(c) != 1 || len(l.changes) != 1 || l.next(now) != 0 {
		t.Errorf("%v went, %v stay", c, l.changes)
	}
}

// TestExplain: the decision, its line and the carrier, without a look-up of a
// name that isn't allowed.
func TestExplain(t *testing.T) {
	p := threeRooms(t)
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, rule(t, "198.51.100.192/26:9000", 20))
	g := newGuard(t, p)
	pinned, _ := firewall.ParseName("ssh.example.org")
	g.rooms["room"].pins.Add(pinned, []netip.Addr{netip.MustParseAddr("198.51.100.22")}, time.Minute)
	for _, c := range []struct {
		room, host string
		port       uint16
		allowed    bool
		reason     string
		line       string
		carrier    string
		resolved   bool
	}{
		{"room", "allowed.example.org", 443, true, "allowed", "workshop.yaml:10", "tls", true},
		{"room", "allowed.example.org", 80, true, "allowed", "workshop.yaml:10", "http", true},
		{"room", "allowed.example.org", 22, false, "port", "", "tcp", false},
		{"room", "allowed.example.org", 23, false, "port", "", "none", false},
		{"room", "a.evil.example", 443, false, "denied", "workshop.yaml:40", "tls", false},
		{"room", "other.example", 443, false, "not-allowed", "", "tls", false},
		{"room", "other.example", 53, false, "not-allowed", "", "none", false},
		{"closed", "allowed.example.org", 443, false, "mode-none", "", "none", false},
		{"wide", "other.example", 4444, true, "open", "", "tcp", true},
		{"room", "198.51.100.200", 9000, true, "allowed", "workshop.yaml:20", "tcp", false},
		{"room", "198.51.100.22", 22, true, "allowed", "workshop.yaml:11", "tcp", false},
		{"room", "198.51.100.23", 22, false, "not-allowed", "", "tcp", false},
		{"room", "10.1.1.1", 9000, false, "denied", "workshop.yaml:42", "tcp", false},
		{"room", "169.254.169.254", 80, false, "metadata", "", "http", false},
		{"room", "::1", 9000, false, "loopback", "", "none", false},
	} {
		a, err := g.Do(t.Context(), control.Request{Op: control.OpExplain, Room: c.room, Host: c.host, Port: c.port})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		x := a.(control.Explanation)
		if x.Allowed != c.allowed || x.Reason != c.reason || x.Line != c.line || x.Carrier != c.carrier || (x.ResolveError != "") != c.resolved {
			t.Errorf("%s %s:%d: %+v", c.room, c.host, c.port, x)
		}
	}
}

// TestExplainBudgets: explain says what the guard would do now, by the same bounds,
// and uses nothing of them.
func TestExplainBudgets(t *testing.T) {
	p := restricted(t, "up.example.org", "**.wild.example.org", "198.51.100.192/26:9000", "free.example.org")
	day := firewall.Budget{Bytes: 10, Per: 24 * time.Hour}
	p.Rooms[0].Allow[0].Upload, p.Rooms[0].Allow[2].Upload = day, day
	g := newGuard(t, p)
	r := g.rooms["room"]
	ask := func(host string, port uint16, lookUp bool) (x control.Explanation) {
		t.Helper()
		a, err := g.Do(t.Context(), control.Request{Op: control.OpExplain, Room: "room", Host: host, Port: port, NoLookUp: !lookUp})
		if err != nil {
			t.Fatal(err)
		}
		if x = a.(control.Explanation); (x.ResolveError != "") != (lookUp && x.Allowed) {
			t.Errorf("%s: looked up: %+v", host, x)
		}
		return x
	}
	want := func(host string, port uint16, reason, line string) {
		t.Helper()
		if x := ask(host, port, false); x.Allowed != (reason == "allowed") || x.Reason != reason || x.Line != line {
			t.Errorf("%s: %+v, want %s", host, x, reason)
		}
	}
	long := strings.Repeat("a", 50) + ".wild.example.org"
	for range 100 { // far more than there are tokens
		want("n.wild.example.org", 443, "allowed", "workshop.yaml:11")
		want("up.example.org", 443, "allowed", "workshop.yaml:10")
	}
	want(long, 443, "wildcard-budget", "workshop.yaml:11")
	want("198.51.100.200", 9000, "allowed", "workshop.yaml:12")
	ask("free.example.org", 443, true)

	taken := 0
	for {
		n, _ := firewall.ParseName(fmt.Sprintf("n%d.wild.example.org", taken))
		if !r.wild.Admit(n, r.policy().Matcher.Name(n, 443)).Allowed {
			break
		}
		taken++
	}
	if taken < 60 {
		t.Errorf("%d names: explain took some", taken)
	}
	for _, b := range r.budget.State(r.policy()) {
		if b.Used != 0 {
			t.Errorf("explain spent: %+v", b)
		}
	}
	want("n999.wild.example.org", 443, "wildcard-budget", "workshop.yaml:11")
	want("n1.wild.example.org", 443, "allowed", "workshop.yaml:11")
}

// TestStateUpstreams: the state names what the guard connects to, without
// credentials.
func TestStateUpstreams(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Resolvers, p.Proxy = []string{"198.51.100.53"}, "http://user:"+secret+"@198.51.100.80:3128"
	got := newGuard(t, p).state().Upstreams
	if want := []control.Upstream{{Kind: "resolver", Address: "198.51.100.53:53"}, {Kind: "proxy", Address: "198.51.100.80:3128"}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestDeniesFollowWorkers: a deny of a room is in the rooms that its workers are in,
// and waits for those that are in none.
func TestDeniesFollowWorkers(t *testing.T) {
	inRooms := func(rooms ...string) *firewall.Policy { // "name: workers"
		p := &firewall.Policy{}
		for _, r := range rooms {
			name, workers, _ := strings.Cut(r, ": ")
			p.Rooms = append(p.Rooms, firewall.RoomPolicy{Room: name, Mode: firewall.Restricted, Workers: strings.Fields(workers)})
		}
		return p
	}
	for _, tt := range []struct {
		name    string
		before  *firewall.Policy
		changes []string
		after   []*firewall.Policy
		want    []string // rooms with denies, in order; "" is all
	}{
		{"all rooms", inRooms("room: a b"), []string{"deny x.example"}, []*firewall.Policy{inRooms("one: a", "two: b")}, []string{""}},
		{"nothing moves", inRooms("room: a", "other: b"), []string{"@other deny x.example"}, []*firewall.Policy{inRooms("room: a", "other: b")}, []string{"other"}},
		{"merged", inRooms("room: a", "other: b"), []string{"@other deny x.example", "@room deny x.example"}, []*firewall.Policy{inRooms("room: a b")}, []string{"room"}},
		{"split", inRooms("room: a b c"), []string{"@room deny x.example"}, []*firewall.Policy{inRooms("room: a", "other: b", "third: c")}, []string{"room", "other", "third"}},
		{"changed places", inRooms("room: a", "other: b"), []string{"@other deny x.example"}, []*firewall.Policy{inRooms("room: b", "other: a")}, []string{"room"}},
		{"away", inRooms("room: a", "other: b"), []string{"@other deny x.example"}, []*firewall.Policy{inRooms("room: a")}, nil},
		{"back", inRooms("room: a", "other: b"), []string{"@other deny x.example"}, []*firewall.Policy{inRooms("room: a"), inRooms("room: a", "new: b")}, []string{"new"}},
		{"half of it away", inRooms("room: a b"), []string{"@room deny x.example"}, []*firewall.Policy{inRooms("room: a"), inRooms("one: a", "two: b")}, []string{"two", "one"}},
		{"allowed meanwhile", inRooms("room: a", "other: b"), []string{"@other deny x.example"}, []*firewall.Policy{inRooms("room: a"), nil, inRooms("room: a", "new: b")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := (&live{base: tt.before}).clone()
			for _, c := range tt.changes {
				if _, err := l.add(liveChange(t, c)); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range tt.after {
				if p != nil {
					l.replace(p, policy.Digest{}, time.Now())
				} else if _, err := l.add(liveChange(t, "x.example")); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, c := range l.changes {
				if c.Deny {
					got = append(got, c.Room)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("denied in %q, want %q", got, tt.want)
			}
		})
	}
}
