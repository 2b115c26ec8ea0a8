package firewall

import (
	"strings"
	"testing"
)

// Two policies with the same lines and other values of their variables are two: that of
// the loader, with the values that it saw, and that of a guard, with its environment.
func TestValuesDigest(t *testing.T) {
	p := &Policy{Version: PolicyVersion, Workshop: "w", Rooms: []RoomPolicy{{Room: "room", Workers: []string{"w"}, Mode: Restricted,
		Allow: []Rule{{Template: "${HOST:?}", Value: "A.example.org", Ports: DefaultAllowPorts()}, {Host: mustPattern(t, "b.example.org"), Ports: DefaultAllowPorts()}},
		Deny:  []Rule{{Template: "${NET:-198.51.100.0/24}", Value: "198.51.100.0/24", Ports: []PortRange{AllPorts}}},
	}}}
	digest := func(host string) string {
		filled, err := Expand(p, func(name string) (string, bool) { return host, name == "HOST" })
		if err != nil {
			t.Fatal(err)
		}
		return ValuesDigest(p, filled)
	}
	loaded := ValuesDigest(p, p.Filled())
	if got := digest("a.example.org"); loaded == "" || got != loaded {
		t.Errorf("the same values: %s and %s", got, loaded)
	}
	if digest("other.example.org") == loaded {
		t.Error("other values, the same digest")
	}
	if r := p.Filled().Rooms[0].Deny[0]; r.Target() != "198.51.100.0/24" || r.Template != "" {
		t.Errorf("filled: %+v", r)
	}
	bad := Rule{Template: "${X}", Value: strings.Repeat("x", 300), Ports: DefaultAllowPorts()}
	if r := bad.Filled(); r.Template != "" || r.Target() != "" {
		t.Errorf("a value that is no host: %q", r.Target())
	}
	p.Rooms[0].Allow, p.Rooms[0].Deny = p.Rooms[0].Allow[1:], nil
	if d := ValuesDigest(p, p.Filled()); d != "" {
		t.Errorf("without templates: %q", d)
	}
}

func mustPattern(t *testing.T, s string) HostPattern {
	t.Helper()
	h, err := ParseHostPattern(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
