//go:build linux

package e2e

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// fence keeps link-local addresses inside this machine while a test tries
// them, and counts the packets that would have left: the proof that none does.
func fence(t *testing.T) (count func() string) {
	t.Helper()
	rule := []string{"-d", "169.254.0.0/16", "-m", "comment", "--comment", "workshop-e2e", "-j", "DROP"}
	run := func(args ...string) string {
		out, err := exec.Command("iptables", append([]string{"-w"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("iptables %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, chain := range []string{"PREROUTING", "OUTPUT"} { // before routing: a machine may have no route there
		run(append([]string{"-t", "mangle", "-I", chain}, rule...)...)
		t.Cleanup(func() { run(append([]string{"-t", "mangle", "-D", chain}, rule...)...) })
	}
	chain := "PREROUTING" // a container's packets; those of this machine's processes begin at OUTPUT
	if !scenario.DockerAPI() {
		chain = "OUTPUT"
	}
	return func() string {
		for line := range strings.Lines(run("-t", "mangle", "-L", chain, "-n", "-v", "-x")) {
			if strings.Contains(line, "workshop-e2e") {
				return strings.Fields(line)[0]
			}
		}
		t.Fatal("the fence is gone")
		return ""
	}
}

func TestB26_HostAndPrivateRanges(t *testing.T) {
	s := restrictedStands.Look(t, "the host, other containers, private and special ranges are closed")
	gw := s.HostAddress()
	host, came := scenario.Listen(t, gw)
	s.Denied("worker",
		scenario.Denial{Probe: "tcp " + host + " -> ECONNREFUSED", Control: "data"},
		scenario.Denial{Probe: "http http://198.18.0.2/ -> 403|" + cutOff, Control: "200"},
		scenario.Denial{Probe: "connect 198.18.0.2:9000 -> ECONNREFUSED", Control: "open"},
	)
	if came() != 1 {
		t.Errorf("the host's listener got %d connections, and 1 is the control's", came())
	}
	// names that lead there: their answers are stripped
	rebind(s, gw, "198.18.0.2", "127.0.0.1")
	s.Sees("worker", "dns 127.0.0.1 rebind.example.org A -> NODATA|NXDOMAIN|SERVFAIL",
		"tcp 198.18.0.2:22 -> "+cutOff, "tcp "+net.JoinHostPort(gw, "22")+" -> "+cutOff)
}

// A service of this machine, as the hint for localhost and host.docker.internal has it:
// on Docker a line with its address opens it, on namespaces nothing does.
func TestB26_ServiceOfTheHostByItsAddress(t *testing.T) {
	s := scenario.New(t, "restricted", "a line with the host's address opens a port there on Docker alone")
	s.Up()
	host, came := scenario.Listen(t, s.HostAddress())
	address, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	closed := address + ":2 stays closed: an address of the machine or container that the guard runs in; nothing opens it"
	if d := s.Expect(0, "firewall", "allow", address+":2"); strings.Contains(d.Err, closed) == (scenario.DockerAPI()) {
		t.Errorf("allowed live: %s%s", d.Out, d.Err)
	}
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:22\n        - {cidr: "+address+"/32, port: "+port+"}\n")
	s.Expect(0, "firewall", "reload")
	if scenario.DockerAPI() {
		s.Sees("worker", "tcp "+host+" -> data", "tcp "+net.JoinHostPort(address, "22")+" -> "+cutOff)
		return
	}
	s.Denied("worker", scenario.Denial{Probe: "tcp " + host + " -> " + cutOff, Control: "data"})
	if came() != 1 {
		t.Errorf("the host's listener got %d connections, and 1 is the control's", came())
	}
}

// rebind lets the allowed name rebind.example.org lead to addresses of the
// attacker's choice, until the test ends.
func rebind(s *scenario.Scenario, addrs ...string) {
	var records []testnet.Record
	for _, a := range addrs {
		records = append(records, testnet.A(a).For(1))
	}
	s.Internet.Answer("rebind.example.org", records...)
	s.Cleanup(func() { s.Internet.Answer("rebind.example.org", testnet.NXDomain) })
}

func TestB31_ARebindingNameIsNotDialled(t *testing.T) {
	s := scenario.New(t, "restricted", "an allowed name whose answer turns to the host or a special range is not dialled, on any port")
	s.Up()
	rebind(s, testnet.Allowed)
	s.Sees("worker", "http http://rebind.example.org/ -> 200", "http https://rebind.example.org/ ca=/ca.pem -> 200")
	for _, r := range s.Control("http http://198.18.0.2/ -> 200") {
		if !r.OK {
			t.Errorf("control: %s", r.Seen)
		}
	}
	gw := s.HostAddress()
	rebind(s, "198.18.0.2", gw)
	time.Sleep(1200 * time.Millisecond) // the answer's TTL
	s.Internet.Reset()
	s.Sees("worker", "http http://rebind.example.org/ connect=198.51.100.66:80 -> 403|502|"+cutOff, "http https://rebind.example.org/ ca=/ca.pem connect=198.51.100.66:443 -> "+cutOff,
		"tunnel 127.0.0.1:536 rebind.example.org:443 -> 403|502", "tunnel 127.0.0.1:536 rebind.example.org:22 -> 403|502")
	if c := s.Internet.Counts().Conns; len(c) != 0 {
		t.Errorf("the guard dialled %v", c)
	}
	rebind(s, "198.18.0.2", testnet.Allowed) // among others, the good one is taken
	time.Sleep(1200 * time.Millisecond)
	s.Sees("worker", "http http://rebind.example.org/ -> 200")
	if n := s.Conns("198.18.0.2", 80); n != 0 {
		t.Errorf("198.18.0.2 got %d connections", n)
	}
}

func TestB26_MetadataNeverLeaves(t *testing.T) {
	s := openStands.Look(t, "the metadata address is closed even with an open network")
	count := fence(t)
	if r := s.Control("connect 169.254.169.254:80 limit=300ms -> TIMEOUT")[0]; !r.OK || count() == "0" {
		t.Errorf("control: the fence counted %s (%s)", count(), r.Seen)
	}
	before := count()
	s.Sees("worker", "http http://169.254.169.254/ -> 403|"+cutOff, "tcp 169.254.169.254:9000 -> "+cutOff, "http https://169.254.169.254/ -> "+cutOff,
		"udp 169.254.169.254:53 limit=500ms -> EPERM|ECONNREFUSED|TIMEOUT|data", "http http://[fd00:ec2::254]/ -> 403|ENETUNREACH|EADDRNOTAVAIL|"+cutOff)
	if after := count(); after != before {
		t.Errorf("packets to link-local addresses left: %s, then %s", before, after)
	}
}

func TestB31_EveryDialChecksTheAddress(t *testing.T) {
	s := openStands.Look(t, "whatever leads the guard to a dial, the address itself is checked before it")
	gw := s.HostAddress()
	host, came := scenario.Listen(t, gw)
	s.Sees("worker", "http http://198.51.100.66/ -> 200", "tcp 198.51.100.66:22 -> data", "http https://evil.example.net/ ca=/ca.pem -> 200")
	s.Denied("worker",
		scenario.Denial{Probe: "tcp " + host + " -> " + cutOff, Control: "data"},
		scenario.Denial{Probe: "tcp 198.18.0.2:22 -> " + cutOff, Control: "data"},
		scenario.Denial{Probe: "http http://198.18.0.2/ -> 403|" + cutOff, Control: "200"},
		scenario.Denial{Probe: "http http://denied.example.org/ connect=198.51.100.11:80 -> 403|" + cutOff, Control: "200"},
	)
	if came() != 1 {
		t.Errorf("the host's listener got %d connections, and 1 is the control's", came())
	}
	if n := s.Conns("198.18.0.2", 22); n != 1 {
		t.Errorf("198.18.0.2 got %d connections on 22, and 1 is the control's", n)
	}
	// the guard itself, and what it would reach on its own loopback
	guard, _ := s.Addresses()
	s.Sees("worker", "tcp "+guard+":9000 -> "+cutOff)
}

func TestB26_IPv6(t *testing.T) {
	s := restrictedStands.Look(t, "IPv6 is closed too, at once; the worker's own ::1 works")
	s.Sees("worker", "connect [2001:db8:1::66]:9000 -> "+refused6, "udp [2001:db8:1::66]:5000 -> EPERM|"+refused6,
		"icmp 2001:db8:1::66 -> EPERM|EACCES|"+refused6, "http https://evil.example.net/ ca=/ca.pem connect=[2001:db8:1::66]:443 -> "+refused6+"|"+cutOff,
		"tcp [2001:db8:1::66]:22 -> "+refused6+"|"+cutOff, "loop [::1]:8080 -> ok")
	silent(s, testnet.Evil6)
}
