package firewall

import (
	"net/netip"
	"testing"
	"time"
)

// A live allow of a name that the file has too opens what it says beside, and
// keeps the file's budget.
func TestOverlayDecidesBeforeTheFile(t *testing.T) {
	line := func(line, host string, ports []PortRange) Rule {
		p, err := ParseHostPattern(host)
		if err != nil {
			t.Fatal(err)
		}
		return Rule{Host: p, Ports: ports, Line: line}
	}
	small := Budget{Bytes: 1 << 10, Per: time.Minute}
	file := line("file", "a.example.org", DefaultAllowPorts())
	other := line("other", "a.example.org", []PortRange{{22, 22}})
	other.Upload = small
	live := line("live", "a.example.org", []PortRange{{443, 443}, {22, 22}})
	live.ECH, live.Private = true, true
	p := Policy{Rooms: []RoomPolicy{{Room: "r", Mode: Restricted, Allow: []Rule{file, other}}}}
	n, err := ParseName("a.example.org")
	if err != nil {
		t.Fatal(err)
	}
	private := netip.MustParseAddr("10.1.2.3")
	for _, x := range []struct {
		live []Live
		port uint16
		line string
		open bool
	}{
		{nil, 443, "file", false},
		{[]Live{{Rule: live}}, 443, "live", true},
		{[]Live{{Rule: live}}, 80, "file", false},
		{[]Live{{Rule: live}}, 22, "live", true},
		{[]Live{{Rule: live, Room: "another"}}, 443, "file", false},
	} {
		m := p.Overlay(x.live, nil).Rooms[0].Compile()
		d := m.Name(n, x.port)
		if d.Rule == nil || d.Rule.Line != x.line || d.Rule.ECH != x.open || m.Dial(d, private, x.port).Allowed != x.open {
			t.Errorf("port %d with %d live: %+v", x.port, len(x.live), d)
		} else if x.open && d.Rule.Upload != small {
			t.Errorf("port %d: the budget is %q, the file's %q", x.port, d.Rule.Upload, small)
		}
	}
	if a := p.Rooms[0].Allow; len(a) != 2 || a[0].Line != "file" {
		t.Errorf("the file's own lines changed: %v", a)
	}
}
