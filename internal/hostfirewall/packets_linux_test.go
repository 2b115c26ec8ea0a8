package hostfirewall

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// exported are rules for the lab.
func exported() *Rules {
	r := sample()
	r.Programs = []Programs{{Projects: []string{"docs"}, UID: 65532, Lines: []Opening{
		opening("10.20.0.0/16", "project docs, workshop.yaml:9: 10.20.0.0/16", 22, 22),
		opening("198.18.0.0/15", "project docs, workshop.yaml:10: 198.18.0.0/15", 443, 443),
	}}}
	r.Bridges[0].Lines = append(r.Bridges[0].Lines, opening("100.64.0.0/10", "project shop, workshop.yaml:14: 100.64.0.0/10", 443, 443),
		opening("10.213.1.1/32", "project shop, workshop.yaml:15: 10.213.1.1", 5432, 5432))
	named := opening("10.0.0.0/8", "project shop, workshop.yaml:16: *.example.org", 443, 443)
	named.Named = true
	r.Bridges[0].Lines = append(r.Bridges[0].Lines, named)
	return r
}

// docker is what an engine leaves on the machine.
const docker = `for t in iptables ip6tables; do
	$t -N DOCKER-USER; $t -A DOCKER-USER -j RETURN; $t -I FORWARD -j DOCKER-USER; $t -A INPUT -p udp --dport 9 -j DROP; $t -A OUTPUT -p udp --dport 9 -j DROP
done`

type try struct {
	name string
	from func(*lab) *testnet.NS
	uid  int
	to   string
	udp  bool
	open bool // with the rules; without them each is
}

func guard(l *lab) *testnet.NS     { return l.guard }
func neighbour(l *lab) *testnet.NS { return l.neighbour }
func elsewhere(l *lab) *testnet.NS { return l.elsewhere }
func machine(l *lab) *testnet.NS   { return l.machine }

var tries = []try{
	{name: "guard, public", from: guard, to: "198.51.100.10:443", open: true},
	{name: "guard, public, any port", from: guard, to: "198.51.100.10:22", open: true},
	{name: "guard, public, IPv6", from: guard, to: "[2001:db8:1::10]:443", open: true},
	{name: "guard, a resolver", from: guard, to: "198.51.100.53:53", udp: true, open: true},
	{name: "guard, a resolver over TCP", from: guard, to: "198.51.100.53:53", open: true},
	{name: "guard, another resolver", from: guard, to: "198.51.100.54:53", udp: true},
	{name: "guard, UDP", from: guard, to: "198.51.100.10:443", udp: true},
	{name: "guard, private with a line", from: guard, to: "10.20.0.5:5432", open: true},
	{name: "guard, private with a line, IPv6", from: guard, to: "[fd12::5]:443", open: true},
	{name: "guard, another port of the line", from: guard, to: "10.20.0.5:22"},
	{name: "guard, private without a line", from: guard, to: "10.99.0.5:5432"},
	{name: "guard, private without a line, IPv6", from: guard, to: "[fd99::5]:443"},
	{name: "guard, private by a name", from: guard, to: "10.99.0.5:443", open: true},
	{name: "guard, metadata", from: guard, to: "169.254.169.254:443"},
	{name: "guard, shared with a line", from: guard, to: "100.64.0.9:443", open: true},
	{name: "guard, metadata in the range of a line", from: guard, to: "100.100.100.200:443"},
	{name: "guard, the machine with a line", from: guard, to: "10.213.1.1:5432", open: true},
	{name: "guard, the machine", from: guard, to: "10.213.1.1:443"},
	{name: "guard, the machine by another address", from: guard, to: "198.18.0.1:443"},
	{name: "guard, the machine, IPv6", from: guard, to: "[2001:db8:9::1]:443"},
	{name: "neighbour, public", from: neighbour, to: "198.51.100.10:443"},
	{name: "neighbour, public, IPv6", from: neighbour, to: "[2001:db8:1::10]:443"},
	{name: "neighbour, private with a line", from: neighbour, to: "10.20.0.5:5432"},
	{name: "neighbour, the machine", from: neighbour, to: "10.213.1.1:5432"},
	{name: "elsewhere to the guard", from: elsewhere, to: "10.213.1.2:443"},
	{name: "elsewhere to the guard, IPv6", from: elsewhere, to: "[2001:db8:9::2]:443"},
	{name: "elsewhere to the neighbour", from: elsewhere, to: "10.213.1.3:443"},
	{name: "elsewhere to a port published beyond loopback", from: elsewhere, to: "10.213.1.2:20001", open: true},
	{name: "elsewhere to a published port", from: elsewhere, to: "198.18.0.1:8080"},
	{name: "elsewhere to a published port, IPv6", from: elsewhere, to: "[2001:db8:ffff::1]:8080"},
	{name: "elsewhere to another port", from: elsewhere, to: "198.18.0.1:443", open: true},
	{name: "the machine to a published port", from: machine, to: "127.0.0.1:8080", open: true},
	{name: "the machine to the guard", from: machine, to: "10.213.1.2:20001", open: true},
	{name: "the machine's own", from: machine, to: "10.99.0.5:443", open: true},
	{name: "program, public", from: machine, uid: 65532, to: "198.51.100.10:443", open: true},
	{name: "program, public, IPv6", from: machine, uid: 65532, to: "[2001:db8:1::10]:443", open: true},
	{name: "program, private with a line", from: machine, uid: 65532, to: "10.20.0.5:22", open: true},
	{name: "program, another port of the line", from: machine, uid: 65532, to: "10.20.0.5:5432"},
	{name: "program, private without a line", from: machine, uid: 65532, to: "10.99.0.5:443"},
	{name: "program, private without a line, IPv6", from: machine, uid: 65532, to: "[fd99::5]:443"},
	{name: "program, the machine in the range of a line", from: machine, uid: 65532, to: "198.18.0.1:443"},
	{name: "program, the machine", from: machine, uid: 65532, to: "127.0.0.1:443"},
	{name: "another program, private", from: machine, uid: 65533, to: "10.99.0.5:443", open: true},
}

func TestPackets(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, f.multi)
			if f.tool == IPTables {
				l.sh(l.machine, docker)
			}
			for _, x := range tries {
				if x.udp && l.asks(x.from(l), x.to) || !x.udp && l.dials(x.from(l), x.uid, x.to) || x.name == "elsewhere to the neighbour" {
					continue
				}
				t.Errorf("%s: without the rules nothing reaches %s", x.name, x.to)
			}
			text, err := Export(f.tool, exported())
			if err != nil {
				t.Fatal(err)
			}
			before := l.saved(f.tool)
			if out, err := l.load(f.tool, text); err != nil || out != "" {
				t.Fatalf("%v: %s", err, out)
			}
			once := l.saved(f.tool)
			if out, err := l.load(f.tool, text); err != nil || out != "" {
				t.Fatalf("again: %v: %s", err, out)
			}
			counted := regexp.MustCompile(`packets [0-9]+ bytes [0-9]+`) // of the kernel's own, such as neighbour discovery
			if diff := cmp.Diff(counted.ReplaceAllString(once, ""), counted.ReplaceAllString(l.saved(f.tool), "")); diff != "" {
				t.Errorf("applied twice isn't once:\n%s", diff)
			}
			for _, x := range tries {
				got := x.udp && l.asks(x.from(l), x.to) || !x.udp && l.dials(x.from(l), x.uid, x.to)
				if got != x.open {
					t.Errorf("%s: %s is open: got %v, want %v", x.name, x.to, got, x.open)
				}
			}
			if out, err := l.load(f.tool, Remove(f.tool, 1000)); err != nil || out != "" {
				t.Fatalf("remove: %v: %s", err, out)
			}
			if diff := cmp.Diff(before, l.saved(f.tool)); diff != "" {
				t.Errorf("removed isn't as before:\n%s", diff)
			}
			if out, err := l.load(f.tool, Remove(f.tool, 1000)); err != nil || out != "" || l.saved(f.tool) != before {
				t.Errorf("removed twice: %v: %s", err, out)
			}
		})
	}
}
