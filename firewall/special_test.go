package firewall

import "testing"

// D13: names of the room's surroundings and of nobody are opened by no mode, no
// learning and no wildcard above; where a line can open one, a line does.
func TestSpecialNames(t *testing.T) {
	lines := rulesOf(t, "printer.local@631", "**.corp.local", "intranet", "nas.home.arpa", "localhost", "me.localhost", "x.onion", "no.invalid", "1.100.51.198.in-addr.arpa", ReadyName)
	for _, r := range lines[4:] {
		if !r.Host.Unopenable() {
			t.Errorf("a line with %s is taken for one that opens something", r.Host)
		}
	}
	for _, c := range []struct {
		name     string
		port     uint16
		lined    string // the reason where lines have some
		learning string // as lined, where the room learns too
		bare     string // without a line, in every mode
	}{
		{"printer.local", 631, ReasonAllowed, ReasonAllowed, ReasonSpecial},
		{"printer.local", 80, ReasonPort, ReasonPort, ReasonSpecial},
		{"other.local", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"git.corp.local", 443, ReasonAllowed, ReasonAllowed, ReasonSpecial},
		{"intranet", 443, ReasonAllowed, ReasonAllowed, ReasonSpecial},
		{"guard", 443, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"nas.home.arpa", 443, ReasonAllowed, ReasonAllowed, ReasonSpecial},
		{"resolver.arpa", 443, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"localhost", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"me.localhost", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"x.onion", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"no.invalid", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"1.100.51.198.in-addr.arpa", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{ReadyName, 80, ReasonSpecial, ReasonSpecial, ReasonSpecial},
		{"local.example.org", 80, ReasonName, ReasonLearned, ""},
		{"onion.example.org", 80, ReasonName, ReasonLearned, ""},
	} {
		n, err := ParseName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		for what, x := range map[string]struct {
			p    RoomPolicy
			want string
		}{
			"lines":            {RoomPolicy{Mode: Restricted, Allow: lines}, c.lined},
			"lines, learning":  {RoomPolicy{Mode: Restricted, Allow: lines, Learn: true}, c.learning},
			"restricted":       {RoomPolicy{Mode: Restricted}, c.bare},
			"learning":         {RoomPolicy{Mode: Restricted, Learn: true}, c.bare},
			"open":             {RoomPolicy{Mode: Open}, c.bare},
			"denied, open":     {RoomPolicy{Mode: Open, Deny: rulesOf(t, c.name+"@1-65535")}, ReasonDenied},
			"denied, learning": {RoomPolicy{Mode: Restricted, Learn: true, Deny: rulesOf(t, c.name+"@1-65535")}, ReasonDenied},
		} {
			if x.want == "" {
				continue
			}
			m := x.p.Compile()
			d := m.Name(n, c.port)
			if d.Reason != x.want || d.Allowed != (x.want == ReasonAllowed || x.want == ReasonLearned) || d.Reason == ReasonSpecial && d.Suggest != "" {
				t.Errorf("%s: %s: %+v, want %s", what, c.name, d, x.want)
			}
			// A question has no port.
			if r := m.Resolvable(n); r.Reason != d.Reason && d.Reason != ReasonPort {
				t.Errorf("%s: %s: a question gives %+v, a connection %+v", what, c.name, r, d)
			}
		}
	}
}

// Of a special name is said which case it is, and what opens it.
func TestWhySpecial(t *testing.T) {
	const byLine = "; only a line opens it, neither mode open nor learning"
	for _, c := range []struct{ name, want string }{
		{"localhost", WhyOwn},
		{"me.localhost", WhyOwn},
		{ReadyName, WhyOwn},
		{"x.onion", "a name of the Tor network (.onion), which is never looked up; nothing opens it"},
		{"no.invalid", "a name that never exists (.invalid); nothing opens it"},
		{"1.100.51.198.in-addr.arpa", "a name of reverse look-ups, which has no address; nothing opens it"},
		{"ip6-localhost", "a name of loopback addresses; nothing opens it"},
		{"metadata", "a name of the cloud's metadata service, which gives away credentials; nothing opens it"},
		{"db", "a name of the local network (a single label)" + byLine},
		{"printer.local", "a name of the local network (.local)" + byLine},
		{"nas.home.arpa", "a name of the local network (.arpa)" + byLine},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Why(ReasonSpecial, c.name, ""); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			p, err := ParseHostPattern(c.name)
			if err != nil {
				t.Fatal(err)
			}
			if p.Unopenable() && p.WhyUnopenable() != c.want {
				t.Errorf("a line: %q, want %q", p.WhyUnopenable(), c.want)
			}
		})
	}
}

// B24: mode open promises nothing about names, so a wildcard that is there for its
// uploads bounds no questions; a budget of uploads is the line's all the same.
func TestOpenBoundsNoNames(t *testing.T) {
	m := (&RoomPolicy{Mode: Open, Allow: rulesOf(t, "*.example.org", "one.example.org")}).Compile()
	for name, byLine := range map[string]bool{"a.example.org": false, "one.example.org": true, "elsewhere.example": false} {
		n, err := ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := m.Resolvable(n); !d.Allowed || (d.Rule != nil) != byLine {
			t.Errorf("%s: a question gives %+v", name, d)
		}
		if d := m.Name(n, 443); !d.Allowed || (d.Rule != nil) != (name != "elsewhere.example") {
			t.Errorf("%s: a connection gives %+v", name, d)
		}
	}
}
