//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// refused are the ways in which a denied connection may end: by a reset at
// once, or, where the room has no IPv6, before a packet is made.
const (
	refused6 = "ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT|ENETUNREACH"
	cutOff   = "ECONNRESET|EOF|TLSALERT|ECONNREFUSED|EPIPE" // by the guard, after it saw whom it is for
)

// silent fails the test when a packet reached the address, or the other one of
// the same server.
func silent(s *scenario.Scenario, addr string) {
	s.Helper()
	for _, protocol := range []string{"tcp", "udp", "icmp"} {
		for _, a := range []string{addr, scenario.Twin(addr)} {
			if a == "" {
				continue
			}
			if n := s.Internet.Packets(protocol, a, 0); n != 0 {
				s.Errorf("%s got %d %s packets", a, n, protocol)
			}
		}
	}
}

func TestB20_NoInterfaceButLoopback(t *testing.T) {
	s := scenario.New(t, "restricted", "with every rule flushed, nothing leaves the room")
	s.Up()
	s.Sees("worker", "interfaces -> lo", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	attacks := []scenario.Denial{
		{Probe: "connect 198.51.100.66:9000 -> ECONNREFUSED", Control: "open"},
		{Probe: "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED", Control: "data"},
		{Probe: "tcp 198.51.100.66:22 -> " + cutOff, Control: "data"},
	}
	s.Denied("worker", attacks...)
	s.Internet.Reset()
	s.FlushRules("room")
	if rules := s.InRoom("room", "iptables-save"); strings.Contains(rules, "WS_") {
		t.Fatalf("the rules are still there:\n%s", rules)
	}
	for _, r := range s.Probe("worker", "connect 198.51.100.66:9000 limit=1s", "connect 198.51.100.66:443 limit=1s", "udp 198.51.100.66:5000 limit=1s",
		"icmp 198.51.100.66 limit=1s", "connect [2001:db8:1::66]:443 limit=1s", "dns 198.51.100.54 allowed.example.org A limit=1s",
		"connect 198.51.100.66:9000 device=lo limit=1s", "interfaces") {
		switch r.Seen {
		case "open", "data", "reply", "ok", testnet.Allowed:
			t.Errorf("after the flush: %s %v: %s (%s)", r.Probe, r.Args, r.Seen, r.Detail)
		}
	}
	for _, r := range s.Intrude(&scenario.Intruder{Service: "room"}, "connect 198.51.100.66:9000 limit=1s", "udp 198.51.100.66:5000 limit=1s", "icmp 198.51.100.66 raw=1 limit=1s") {
		if slices.Contains([]string{"open", "data", "reply"}, r.Seen) {
			t.Errorf("after the flush, as root: %s %v: %s", r.Probe, r.Args, r.Seen)
		}
	}
	silent(s, testnet.Evil)
	silent(s, testnet.DNS2)
}

func TestB20_NoneHasNothing(t *testing.T) {
	s := scenario.New(t, "none", "without a network section there is loopback and nothing else, and look-ups fail at once")
	s.Up()
	if c := s.Containers(); len(c) != 1 {
		t.Errorf("containers: %v", c)
	}
	s.Denied("worker",
		scenario.Denial{Probe: "connect 198.51.100.66:9000 -> ENETUNREACH", Control: "open"},
		scenario.Denial{Probe: "udp 198.51.100.66:5000 -> ENETUNREACH", Control: "data"},
		scenario.Denial{Probe: "dns 198.51.100.54 allowed.example.org A -> ENETUNREACH", Control: testnet.Allowed},
	)
	s.Internet.Reset()
	s.Sees("worker", "interfaces -> lo", "loop 127.0.0.1:8080 -> ok", "connect [2001:db8:1::66]:443 -> "+refused6,
		"lookup allowed.example.org -> ECONNREFUSED|NXDOMAIN|ENETUNREACH")
	silent(s, testnet.DNS)
	silent(s, testnet.Evil)
}

func TestB22_TheRoomCantBeChanged(t *testing.T) {
	s := restrictedStands.Look(t, "a worker changes no rule, route, address or link, and takes no port of the guard")
	before := s.InRoom("room", "iptables-save") + s.InRoom("room", "ip6tables-save") + s.InRoom("room", "ip", "route", "show", "table", "all")
	s.Sees("worker",
		"route add 198.51.100.0/24 -> EPERM", "route del default -> EPERM", "address add 198.51.100.66/32 -> EPERM", "link down lo -> EPERM", "link add x0 -> EPERM|EOPNOTSUPP",
		"rules flush -> EPERM", "rules add -> EPERM", "xtables -> EPERM|EACCES", "sockopt mark -> EPERM", "sockopt transparent -> EPERM",
		"write /proc/sys/net/ipv4/ip_unprivileged_port_start text=0 -> EROFS|EACCES|EPERM", "write /proc/sys/net/ipv4/ip_forward text=1 -> EROFS|EACCES|EPERM",
		"bind tcp 127.0.0.1:531 -> EACCES", "bind udp 127.0.0.1:531 -> EACCES", "bind tcp 0.0.0.0:533 -> EACCES", "bind tcp 0.0.0.0:534 -> EACCES",
		"bind tcp 0.0.0.0:535 -> EACCES", "bind tcp 127.0.0.1:536 -> EACCES", "bind tcp 0.0.0.0:53 -> EACCES", "bind udp 0.0.0.0:53 -> EACCES", "bind tcp 0.0.0.0:443 -> EACCES",
		"bind tcp 0.0.0.0:1023 -> EACCES", "bind tcp 0.0.0.0:1024 -> ok", "bind udp 0.0.0.0:8080 -> ok",
		"list /run/workshop -> ENOENT|empty") // the room's socket is for room and guard
	// the transparent ports take redirected connections only
	s.Sees("worker", "connect 127.0.0.1:533 -> ECONNREFUSED", "connect 127.0.0.1:534 -> ECONNREFUSED", "connect 127.0.0.1:535 -> ECONNREFUSED", "connect [::1]:534 -> "+refused6)
	after := s.InRoom("room", "iptables-save") + s.InRoom("room", "ip6tables-save") + s.InRoom("room", "ip", "route", "show", "table", "all")
	if strip(before) != strip(after) {
		t.Errorf("the room changed:\n%s\n%s", before, after)
	}
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}

// strip removes the times and counters of iptables-save.
func strip(saved string) string {
	var out []string
	for line := range strings.Lines(saved) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if i := strings.Index(line, " ["); i > 0 && strings.HasPrefix(line, ":") {
			line = line[:i]
		}
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

func TestB22_RootWithDefaultCapabilities(t *testing.T) {
	s := restrictedStands.Look(t, "even uid 0 with the engine's default capabilities, in the room, changes nothing and gets nowhere")
	for _, r := range s.Intrude(&scenario.Intruder{Service: "room"},
		"route add 198.51.100.0/24 -> EPERM", "rules flush -> EPERM", "link down lo -> EPERM", "sockopt transparent -> EPERM|ok",
		"bind tcp 0.0.0.0:534 -> EADDRINUSE", "bind tcp [::]:533 -> EADDRINUSE", "bind udp 0.0.0.0:531 -> EADDRINUSE",
		"connect 198.51.100.66:9000 -> ECONNREFUSED", "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED", "icmp 198.51.100.66 raw=1 -> EPERM|EACCES",
		"http https://evil.example.net/ ca=/ca.pem connect=198.51.100.66:443 -> ENOENT|"+cutOff) {
		if !r.OK {
			t.Errorf("%s %v: saw %s (%s), want %s", r.Probe, r.Args, r.Seen, r.Detail, r.Expected)
		}
	}
	silent(s, testnet.Evil)
}

// TestRulesAreTheOnesShown: what the generated project shows is what
// iptables-save prints inside.
func TestRulesAreTheOnesShown(t *testing.T) {
	s := roomsStands.Look(t, "rules.v4 and rules.v6 are the rules of the room")
	s.Expect(0, "compile")
	for service := range s.Containers() {
		if !strings.HasPrefix(service, "room") {
			continue
		}
		for file, save := range map[string]string{"rules.v4": "iptables-save", "rules.v6": "ip6tables-save"} {
			shown := s.Read(".workshop/rooms/" + ruleFile(s, service, file))
			if got := s.InRoom(service, save); strip(got) != strip(shown) {
				t.Errorf("%s of %s:\n%s\nis in the kernel:\n%s", file, service, shown, got)
			}
		}
	}
}

// ruleFile finds a room's file below .workshop/<name>/, whatever it is called.
func ruleFile(s *scenario.Scenario, room, file string) string {
	for _, c := range []string{room + "/" + file, "rooms/" + room + "/" + file, room + "." + file, file} {
		if s.Exists(".workshop/rooms/" + c) {
			return c
		}
	}
	s.Fatalf("no %s of %s", file, room)
	return ""
}

func TestB20_RoomsAreApart(t *testing.T) {
	s := roomsStands.Look(t, "workers of one policy share loopback, others don't")
	if a, b := s.NamespaceOf("first", "net"), s.NamespaceOf("second", "net"); a != b {
		t.Errorf("first and second: %s, %s", a, b)
	}
	if a, b := s.NamespaceOf("first", "net"), s.NamespaceOf("third", "net"); a == b {
		t.Error("the third worker has no room of its own")
	}
	stop := s.Serve("first", "127.0.0.1:8080", "first")
	defer stop()
	s.Sees("second", "http http://127.0.0.1:8080/ -> 200", "tcp 198.51.100.22:22 -> data|"+cutOff)
	s.Sees("third", "http http://127.0.0.1:8080/ -> ECONNREFUSED")
	// the policies are the rooms' own
	s.Sees("second", "lookup ssh.example.org -> "+testnet.SSH+"*")
	s.Sees("third", "lookup ssh.example.org -> NXDOMAIN", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}
