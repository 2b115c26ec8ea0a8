//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

func TestB23_Names(t *testing.T) {
	s := restrictedStands.Look(t, "a denied name causes no packet to any resolver, whichever server is asked; allowed ones are asked by the guard")
	s.Denied("worker",
		scenario.Denial{Probe: "dns 198.51.100.53 denied.example.org A -> NXDOMAIN", Control: testnet.Denied},
		scenario.Denial{Probe: "dns 198.51.100.54 denied.example.org A -> NXDOMAIN", Control: testnet.Denied},
		scenario.Denial{Probe: "dns 198.51.100.54 denied.example.org A net=tcp -> NXDOMAIN", Control: testnet.Denied},
		scenario.Denial{Probe: "dns 198.51.100.66 evil.example.net A -> NXDOMAIN", Control: "TIMEOUT|ECONNREFUSED|" + testnet.Evil},
	)
	s.Internet.Reset()
	s.Sees("worker",
		"dns 198.51.100.54 denied.example.org A -> NXDOMAIN", "dns 198.51.100.54 secret-data.evil.example.net TXT -> NXDOMAIN", "lookup denied.example.org -> NXDOMAIN",
		"dns 127.0.0.1 x.gist.allowed.example.org A -> NXDOMAIN", "dns 198.51.100.66 x.y.z A net=tcp -> NXDOMAIN")
	if q := s.Internet.Queries(); len(q) != 0 {
		t.Errorf("denied names were asked upstream: %+v", q)
	}
	// allowed: the answer is the guard's, the other server sees nothing
	s.Sees("worker", "dns 198.51.100.54 allowed.example.org A -> "+testnet.Allowed, "dns 198.51.100.66 ALLOWED.example.org A net=tcp -> "+testnet.Allowed,
		"dns 198.51.100.54 allowed.example.org TXT -> NODATA", "dns 198.51.100.54 allowed.example.org HTTPS -> NODATA", "dns 198.51.100.54 allowed.example.org SVCB -> NODATA",
		"lookup allowed.example.org -> "+testnet.Allowed+"*")
	silent(s, testnet.DNS2)
	silent(s, testnet.Evil)
	if s.Internet.Asked("allowed.example.org") == 0 {
		t.Error("the guard asked nobody")
	}
	for _, q := range s.Internet.Queries() {
		if !strings.EqualFold(q.Name, "allowed.example.org.") || q.Type != "A" && q.Type != "AAAA" {
			t.Errorf("the guard asked %s %s", q.Name, q.Type)
		}
	}
}

func TestB24_ByName(t *testing.T) {
	s := restrictedStands.Look(t, "80 and 443 go by name: the guard dials its own answer, a lie reaches nobody")
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "http http://allowed.example.org/ -> 200")
	s.Denied("worker",
		scenario.Denial{Probe: "http https://denied.example.org/ ca=/ca.pem connect=198.51.100.11:443 -> " + cutOff, Control: "200"},
		scenario.Denial{Probe: "http http://denied.example.org/ connect=198.51.100.11:80 -> 403|" + cutOff, Control: "200"},
		scenario.Denial{Probe: "http https://198.51.100.66/ ca=/ca.pem -> " + cutOff, Control: "200"},
		scenario.Denial{Probe: "tcp 198.51.100.66:443 send=\"hello\\r\\n\" -> " + cutOff, Control: "data|" + cutOff},
	)
	s.Internet.Reset()
	// the name is allowed, the address is the attacker's
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem connect=198.51.100.66:443 -> 200", "http http://allowed.example.org/ connect=198.51.100.66:80 -> 200")
	if n := s.Conns(testnet.Evil, 443) + s.Conns(testnet.Evil, 80); n != 0 {
		t.Errorf("the attacker's address got %d connections", n)
	}
	if s.Conns(testnet.Allowed, 443) != 1 || s.Conns(testnet.Allowed, 80) != 1 {
		t.Errorf("the name's own address got %+v", s.Internet.Counts().Conns)
	}
	// one name for the guard, another inside
	s.Internet.Reset()
	s.Sees("worker",
		"http http://allowed.example.org/ host=evil.example.net -> 403|400|421|"+cutOff,
		"http https://evil.example.net/ sni=allowed.example.org connect=198.51.100.66:443 ca=/ca.pem -> BADCERT|200|421|"+cutOff,
		`tcp 198.51.100.10:80 send="GET / HTTP/1.1\r\nHost: allowed.example.org\r\nHost: evil.example.net\r\n\r\n" -> data|`+cutOff)
	silent(s, testnet.Evil)
}

func TestB24_ExplicitProxy(t *testing.T) {
	s := restrictedStands.Look(t, "the explicit proxy decides as the transparent ports do, with better words")
	s.Sees("worker",
		"http https://allowed.example.org/ ca=/ca.pem proxy=env -> 200", "http http://allowed.example.org/ proxy=env -> 200",
		"tunnel 127.0.0.1:536 allowed.example.org:443 -> 200", "tunnel 127.0.0.1:536 denied.example.org:443 -> 403",
		"tunnel 127.0.0.1:536 198.51.100.66:443 -> 403|400", "tunnel 127.0.0.1:536 allowed.example.org:25 -> 403",
		"tunnel 127.0.0.1:536 localhost:443 -> 403|400", "http http://denied.example.org/ proxy=http://127.0.0.1:536 -> 403")
	silent(s, testnet.Evil)
	silent(s, testnet.Denied)
}

func TestB25_OtherPorts(t *testing.T) {
	s := restrictedStands.Look(t, "another port needs a rule, and leads to the addresses of its name only")
	s.Sees("worker", "tcp ssh.example.org:22 -> data")
	s.Denied("worker",
		scenario.Denial{Probe: "tcp 198.51.100.66:22 -> " + cutOff, Control: "data"},
		scenario.Denial{Probe: "tcp 198.51.100.10:22 -> " + cutOff, Control: "data"}, // allowed, but not for 22
		scenario.Denial{Probe: "connect 198.51.100.22:2222 -> ECONNREFUSED", Control: "open"},
		scenario.Denial{Probe: "connect 198.51.100.10:8000 -> ECONNREFUSED", Control: "open"},
		scenario.Denial{Probe: "http http://ssh.example.org/ connect=198.51.100.22:80 -> 403|" + cutOff, Control: "200"},
	)
	s.Internet.Reset()
	s.Sees("worker", "tcp 198.51.100.66:22 -> "+cutOff, "connect 198.51.100.66:2222 -> ECONNREFUSED")
	silent(s, testnet.Evil)
}

func TestB28_DenialsAreTold(t *testing.T) {
	s := scenario.New(t, "restricted", "a denial is an event of the guard with what was tried and the line that would allow it")
	s.Up()
	s.Sees("worker", "lookup denied.example.org -> NXDOMAIN", "connect 198.51.100.66:9000 -> ECONNREFUSED", "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED")
	for _, want := range []string{"denied.example.org", "198.51.100.66", "9000"} {
		s.Eventually("an event names "+want, func() bool { return strings.Contains(s.Logs("guard"), want) })
	}
	if len(s.Events()) == 0 {
		t.Error("the guard's lines are no JSON")
	}
}
