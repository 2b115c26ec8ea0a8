package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"api.example.org": "api.example.org 0", "API.example.org:22": "api.example.org 22", "198.51.100.7:443": "198.51.100.7 443",
		"2001:db8::1": "2001:db8::1 0", "[2001:db8::1]:443": "2001:db8::1 443", "[::ffff:10.0.0.1]:80": "10.0.0.1 80",
		"": "!", "a b": "!", "*.example.org": "!", "10.0.0.0/8": "!", "x:0": "!", "x:1-2": "!", "x:1,2": "!", "0x7f.1": "!", "https://example.org/": "!", "2130706433": "!", "fe80::1%lo": "!",
	} {
		x, f := parseEndpoint(text)
		got := x.host() + " " + firewall.FormatPorts([]firewall.PortRange{{First: x.port, Last: x.port}})
		if f != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// What a probe saw is the guard's refusal, or the host's own answer.
func TestConnectionOutcome(t *testing.T) {
	name, _ := parseEndpoint("a.example.org:443")
	addr, _ := parseEndpoint("198.51.100.7:443")
	own, _ := parseEndpoint("localhost:443")
	for _, c := range []struct {
		x            endpoint
		seen, detail string
		want         ProbeOutcome
	}{
		{name, "handshake", "198.51.100.10:443 TLS 1.3", ProbeReached},
		{name, "TLSALERT", "remote error: tls: access denied", ProbeRefused},
		{name, "TLSALERT", "remote error: tls: handshake failure", ProbeReached},
		{name, "TLSALERT", "remote error: tls: unrecognized name", ProbeReached},
		{addr, "TLSALERT", "remote error: tls: unrecognized name", ProbeRefused},
		{own, "ECONNREFUSED", "", ProbeFailed}, {own, "TIMEOUT", "", ProbeSilent},
		{name, "NXDOMAIN", "", ProbeRefused}, {name, "ECONNREFUSED", "", ProbeRefused}, {name, "ECONNRESET", "", ProbeFailed}, {name, "EOF", "", ProbeFailed}, {name, "TIMEOUT", "", ProbeSilent},
		{name, "data", "HTTP/1.1 403 Forbidden\r\nX-Workshop-Deny: metadata\r\n", ProbeRefused},
		{name, "data", "HTTP/1.1 403 Forbidden\r\nServer: x\r\n", ProbeReached},
		{name, "data", "SSH-2.0-x", ProbeReached},
	} {
		if got := connectionOutcome(ProbeResult{Seen: c.seen, Detail: c.detail}, c.x); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.seen, c.detail, got, c.want)
		}
	}
}

// Whatever is seen otherwise than expected is a difference, above all a refused
// host that is reached.
func TestExplainDifferences(t *testing.T) {
	room := &firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}}
	host, _ := firewall.ParseHostPattern("a.example.org")
	room.Allow = []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts(), Line: "workshop.yaml:1"}}
	yes := control.Explanation{Allowed: true, Reason: "allowed", Addresses: []control.ExplainedAddress{{Address: "198.51.100.10", Allowed: true, Reason: "allowed"}}}
	no := control.Explanation{Reason: "not-allowed"}
	for _, c := range []struct {
		name, host string
		guard      control.Explanation
		lookUp     ProbeOutcome
		connection ProbeOutcome
		want       string // of the difference; "" for none
		allowed    bool
	}{
		{"all is well", "a.example.org", yes, ProbeReached, ProbeReached, "", true},
		{"silent", "a.example.org", yes, ProbeReached, ProbeSilent, "", true},
		{"the guard knows better", "a.example.org", no, ProbeRefused, ProbeRefused, "the running guard refuses it", true},
		{"the host is down", "a.example.org", yes, ProbeReached, ProbeFailed, "connection failed", true},
		{"refused on the way", "a.example.org", yes, ProbeReached, ProbeRefused, "the worker was refused", true},
		{"no address", "a.example.org", control.Explanation{Allowed: true, ResolveError: "timeout"}, ProbeFailed, ProbeFailed, "finds no address", true},
		{"none at all", "a.example.org", control.Explanation{Allowed: true, ResolveError: control.NoAddress}, ProbeRefused, ProbeRefused, "", true},
		{"private", "a.example.org", control.Explanation{Reason: "private", Address: "10.0.0.1"}, ProbeRefused, ProbeFailed, "", false},
		{"private and reached", "a.example.org", control.Explanation{Reason: "private", Address: "10.0.0.1"}, ProbeRefused, ProbeReached, "the worker reached it", false},
		{"the upstream proxy is down", "a.example.org", control.Explanation{Allowed: true, Proxy: "proxy.example.net:3128", ProxyError: "the upstream proxy proxy.example.net:3128 can't be resolved"},
			ProbeReached, ProbeFailed, "it is allowed, but the upstream proxy proxy.example.net:3128 can't be resolved", true},
		{"used up", "a.example.org", control.Explanation{Reason: "upload-budget", Line: "workshop.yaml:1"}, ProbeReached, ProbeRefused, "", false},
		{"used up and reached", "a.example.org", control.Explanation{Reason: "upload-budget", Line: "workshop.yaml:1"}, ProbeReached, ProbeReached, "the worker reached it", false},
		{"too many names", "a.example.org", control.Explanation{Reason: "wildcard-budget", Suggest: "a.example.org"}, ProbeRefused, ProbeRefused, "", false},
		{"denied", "b.example.org", no, ProbeRefused, ProbeRefused, "", false},
		{"denied and reached", "b.example.org", no, ProbeRefused, ProbeReached, "the worker reached it", false},
		{"denied and open", "b.example.org", no, ProbeRefused, ProbeSilent, "stayed open", false},
		{"denied and answered", "b.example.org", no, ProbeReached, ProbeFailed, "look-up got", false},
		{"the guard allows more", "b.example.org", yes, ProbeReached, ProbeReached, "the running guard allows it", false},
	} {
		x, _ := parseEndpoint(c.host)
		d := x.decide(room, 443)
		e := &Explanation{Host: c.host, Port: 443, Worker: "w", Allowed: d.Allowed, room: room, Now: &ProbedNow{
			Guard: &c.guard, LookUp: &ProbeResult{Seen: "198.51.100.10", Outcome: c.lookUp}, Connection: &ProbeResult{Seen: "x", Outcome: c.connection},
		}}
		e.compareGuard(x, c.guard)
		e.compareWorker(x)
		got := strings.Join(e.Differences, "; ")
		if e.Allowed != c.allowed || !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: allowed %v, differences %q, want %q", c.name, e.Allowed, got, c.want)
		}
		if strings.Contains(got, "the host may not listen") && c.name != "the host is down" {
			t.Errorf("%s: %q blames the host", c.name, got)
		}
	}
}

// What is the room's own is decided by no rule, and nothing about it is a difference but
// a look-up that leads elsewhere (B20).
func TestExplainOwnLoopback(t *testing.T) {
	deny, _ := firewall.ParseHostPattern("localhost")
	room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}, Deny: []firewall.Rule{{Host: deny, Ports: []firewall.PortRange{firewall.AllPorts}, Line: "workshop.yaml:1"}}}
	v := &PolicyView{c: &Project{ProjectRef: ProjectRef{Dir: t.TempDir()}, Source: &Source{}}, Effective: []firewall.RoomPolicy{room}, None: []string{"closed"}}
	for _, text := range []string{"localhost:3000", "me.localhost:3000", "127.0.0.1:3000", "127.9.9.9:3000", "[::1]:3000", "0.0.0.0:3000", "[::]:3000"} {
		x, f := parseEndpoint(text)
		if f != nil {
			t.Fatal(f)
		}
		for _, worker := range []string{"w", "closed"} {
			if e := v.explain(x, x.port, worker, false); !e.Allowed || e.Reason != reasonOwn || e.Why != firewall.WhyOwn || e.Line != nil || e.Suggest+e.Command != "" {
				t.Errorf("%s for %s: %+v", text, worker, e)
			}
		}
		e := v.explain(x, x.port, "w", false)
		if room := e.Enforced[len(e.Enforced)-1]; !strings.HasPrefix(room, "room: a loopback address is the room's own") || strings.Contains(strings.Join(e.Enforced, "\n"), "NXDOMAIN") {
			t.Errorf("%s: %q", text, e.Enforced)
		}
		for _, outcome := range []ProbeOutcome{ProbeReached, ProbeSilent, ProbeFailed} {
			e.Now = &ProbedNow{Connection: &ProbeResult{Seen: "x", Outcome: outcome}, LookUp: &ProbeResult{Seen: "127.0.0.1", Outcome: ProbeReached}}
			if e.compareWorker(x); len(e.Differences) > 0 {
				t.Errorf("%s, %s: %q", text, outcome, e.Differences)
			}
		}
	}
	x, _ := parseEndpoint("localhost:3000")
	e := v.explain(x, 3000, "w", false)
	e.Now = &ProbedNow{LookUp: &ProbeResult{Seen: "198.51.100.10", Outcome: ProbeReached}}
	if e.compareWorker(x); len(e.Differences) != 1 {
		t.Errorf("a look-up that leads elsewhere: %q", e.Differences)
	}
}

// A live deny of the very host names the command that ends it, of more than that only
// what drops it.
func TestExplainLiveDeny(t *testing.T) {
	line := func(text string) firewall.Rule {
		r, f := parseRule(text, true)
		if f != nil {
			t.Fatal(f)
		}
		return r
	}
	for _, c := range []struct {
		name, target string
		file         []firewall.Rule
		live         []firewall.Live
		live1        bool // the line that is shown is live
		command      string
	}{
		{"of the host", "a.example.org:443", nil, []firewall.Live{{Deny: true, Rule: line("a.example.org")}}, true, "workshop firewall allow a.example.org"},
		{"in the room", "a.example.org:443", nil, []firewall.Live{{Deny: true, Room: "room", Rule: line("a.example.org")}}, true, "workshop firewall allow a.example.org --worker w"},
		{"in the room and for all", "a.example.org:443", nil, []firewall.Live{{Deny: true, Room: "room", Rule: line("a.example.org")}, {Deny: true, Rule: line("a.example.org")}}, true, "workshop firewall allow a.example.org"},
		{"of another port", "a.example.org:22", nil, []firewall.Live{{Deny: true, Rule: line("a.example.org:22")}}, true, "workshop firewall allow a.example.org:22"},
		{"of a wildcard", "a.example.org:443", nil, []firewall.Live{{Deny: true, Rule: line("*.example.org")}}, true, ""},
		{"of a wildcard too", "a.example.org:443", nil, []firewall.Live{{Deny: true, Rule: line("a.example.org")}, {Deny: true, Rule: line("*.example.org")}}, true, ""},
		{"of an address", "198.51.100.7:443", nil, []firewall.Live{{Deny: true, Rule: line("198.51.100.7")}}, true, "workshop firewall allow 198.51.100.7:443"},
		{"of a range", "198.51.100.7:443", nil, []firewall.Live{{Deny: true, Rule: line("198.51.100.0/24")}}, true, ""},
		{"of what nothing opens", "x.onion:80", nil, []firewall.Live{{Deny: true, Rule: line("x.onion")}}, true, ""},
		{"of port 53", "a.example.org:53", nil, []firewall.Live{{Deny: true, Rule: line("a.example.org")}}, true, ""},
		{"and one of the file", "a.example.org:443", []firewall.Rule{line("*.example.org")}, []firewall.Live{{Deny: true, Rule: line("a.example.org")}}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}, Deny: c.file}
			for i := range c.file {
				room.Deny[i].Line = "workshop.yaml:7"
			}
			v := &PolicyView{c: &Project{ProjectRef: ProjectRef{Dir: t.TempDir()}, Source: &Source{}}, file: []firewall.RoomPolicy{room}, State: &control.State{Live: c.live}}
			v.Effective = (&firewall.Policy{Rooms: v.file}).Overlay(v.live(), nil).Rooms
			x, f := parseEndpoint(c.target)
			if f != nil {
				t.Fatal(f)
			}
			e := v.explain(x, x.port, "w", false)
			if e.Allowed || e.Line == nil || e.Line.Live != c.live1 || e.Command != c.command || strings.HasPrefix(e.Why, "denied by a live change") != c.live1 || strings.Contains(e.Why, "--reset") != (c.live1 && c.command == "") {
				t.Errorf("got %+v, line %+v", e, e.Line)
			}
		})
	}
}

// A connection that a line of the file and a live change allow is the file's, and the
// live change is named too; one that the live change alone allows is its.
func TestExplainFileAndLive(t *testing.T) {
	host, _ := firewall.ParseHostPattern("a.example.org")
	rule := func(line string) firewall.Rule {
		return firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts(), Line: line}
	}
	live := []firewall.Live{{Rule: rule(firewall.LiveLine)}}
	for _, c := range []struct {
		name       string
		file       []firewall.Rule
		live       []firewall.Live
		line, also string
	}{
		{"the file", []firewall.Rule{rule("workshop.yaml:7")}, nil, "workshop.yaml:7", ""},
		{"live", nil, live, firewall.LiveLine, ""},
		{"both", []firewall.Rule{rule("workshop.yaml:7")}, live, "workshop.yaml:7", firewall.LiveLine},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}, Allow: c.file}
			v := &PolicyView{c: &Project{ProjectRef: ProjectRef{Dir: t.TempDir()}, Source: &Source{}}, file: []firewall.RoomPolicy{room}, State: &control.State{Live: c.live}}
			v.Effective = (&firewall.Policy{Rooms: v.file}).Overlay(v.live(), func(string) bool { return false }).Rooms
			x, _ := parseEndpoint("a.example.org")
			e := v.explain(x, 443, "w", false)
			also := ""
			if e.Also != nil {
				also = e.Also.PolicyRule.Line
			}
			if !e.Allowed || e.Line == nil || e.Line.PolicyRule.Line != c.line || also != c.also {
				t.Errorf("line %+v, also %q; want %q and %q", e.Line, also, c.line, c.also)
			}
		})
	}
}

// What is refused for its address has one verdict, with what opens it where
// something does, whether a name or the address itself is asked about (B26).
func TestExplainAddress(t *testing.T) {
	room := &firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}}
	host, _ := firewall.ParseHostPattern("a.example.org")
	room.Allow = []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts(), Line: "workshop.yaml:1"}}
	for _, c := range []struct {
		host, addr, reason, suggest string
		why, command                string
	}{
		{"a.example.org", "198.51.100.10", "own-address", "",
			"a.example.org resolves to 198.51.100.10: an address of the machine or container that the guard runs in; nothing opens it", ""},
		{"198.51.100.10", "198.51.100.10", "own-address", "",
			"an address of the machine or container that the guard runs in; nothing opens it", ""},
		{"a.example.org", "10.0.0.1", "gateway", "{cidr: 10.0.0.1/32, port: 443}",
			"a.example.org resolves to 10.0.0.1: the machine that the workshop runs on, or its router; a line with a `cidr:` opens it", "workshop firewall allow 10.0.0.1:443 --worker w"},
		{"a.example.org", "10.1.2.3", "private", "{host: a.example.org, port: 443, private: true}",
			"a.example.org resolves to 10.1.2.3: " + ReasonText("private", "", ""), "workshop firewall allow a.example.org:443 --private --worker w"},
	} {
		t.Run(c.host+" "+c.reason, func(t *testing.T) {
			x, _ := parseEndpoint(c.host)
			d := x.decide(room, 443)
			e := &Explanation{Host: c.host, Port: 443, Worker: "w", Allowed: d.Allowed, Reason: d.Reason, Suggest: d.Suggest, Command: "a command", room: room,
				Others: []ExplainedOther{{Workers: []string{"wide"}, Allowed: true, Reason: "open"}, {Workers: []string{"closed"}, Reason: "mode-none"}}}
			e.compareGuard(x, control.Explanation{Reason: c.reason, Suggest: c.suggest, Address: c.addr, Addresses: []control.ExplainedAddress{{Address: c.addr, Reason: c.reason}}})
			if e.Allowed || e.Reason != c.reason || e.Why != c.why || e.Suggest != c.suggest || e.Command != c.command || len(e.Differences) > 0 || len(e.Others) != 1 || e.Others[0].Allowed {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// What a worker with a kernel of its own connects to is handed to its outlet, or refused by that
// kernel; what is looked up isn't.
func TestExplainOwnKernel(t *testing.T) {
	room := &firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"w"}}
	for _, c := range []struct {
		target string
		port   uint16
		want   []string // how each begins
	}{
		{"198.51.100.10:443", 443, []string{"kernel: it is the worker's own, and hands", "room: its rules lead", "guard: "}},
		{"198.51.100.10:23", 23, []string{"kernel: it is the worker's own, and hands", "room: its rules refuse"}},
		{"198.51.100.10:9000", 9000, []string{"kernel: it is the worker's own, and refuses tcp port 9000"}},
		{"a.example.org:9000", 9000, []string{"look-up: ", "kernel: it is the worker's own, and refuses"}},
		{"127.0.0.1:9000", 9000, []string{"kernel: a loopback address is the worker's own"}},
	} {
		x, _ := parseEndpoint(c.target)
		got := enforced(room, x, c.port, x.decide(room, c.port), true)
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q", c.target, got)
		}
		if others := strings.Join(enforced(room, x, c.port, x.decide(room, c.port), false), "\n"); strings.Contains(others, "kernel:") {
			t.Errorf("%s with this machine's kernel: %s", c.target, others)
		}
	}
}
