package firewall

import (
	"net/netip"
	"strings"
	"testing"
)

// rule reads "host[:ports] [private]" or "cidr:ports" as a test writes it.
func rule(t testing.TB, s string) Rule {
	t.Helper()
	target, flags, _ := strings.Cut(s, " ")
	r := Rule{Private: flags == "private", Line: s}
	host, list, ok := strings.Cut(target, "@")
	r.Ports = DefaultAllowPorts()
	if ok {
		r.Ports = ports(t, list)
	}
	if strings.Contains(host, "/") {
		r.CIDR = netip.MustParsePrefix(host)
	} else {
		r.Host = pattern(t, host)
		r.AnyTenant = true
	}
	return r
}

func rulesOf(t testing.TB, list ...string) (out []Rule) {
	for _, s := range list {
		out = append(out, rule(t, s))
	}
	return out
}

func TestMatcherName(t *testing.T) {
	restricted := RoomPolicy{
		Mode: Restricted,
		Allow: rulesOf(t, "api.example.org", "example.org@22", "*.example.org@8000-8010", "**.example.org@9000",
			"**.a.example.org@9000", "a.b.example.net@443", "10.0.0.0/8@5432"),
		Deny: rulesOf(t, "**.evil.example.org@1-65535", "api.example.org@80", "x.example.org@9000"),
	}
	open := RoomPolicy{Mode: Open, Deny: restricted.Deny}
	for _, c := range []struct {
		room    RoomPolicy
		name    string
		port    uint16
		allowed bool
		reason  string
		line    string
		suggest string
	}{
		{restricted, "api.example.org", 443, true, ReasonAllowed, "api.example.org", ""},
		{restricted, "API.example.org", 443, true, ReasonAllowed, "api.example.org", ""},
		{restricted, "api.example.org", 80, false, ReasonDenied, "api.example.org@80", ""},
		{restricted, "api.example.org", 22, false, ReasonPort, "", "api.example.org:22"},
		{restricted, "api.example.org", 8005, true, ReasonAllowed, "*.example.org@8000-8010", ""},
		{restricted, "example.org", 443, false, ReasonPort, "", "example.org"},
		{restricted, "example.org", 22, true, ReasonAllowed, "example.org@22", ""},
		{restricted, "example.org", 9000, false, ReasonPort, "", "example.org:9000"},
		{restricted, "a.example.org", 9000, true, ReasonAllowed, "**.example.org@9000", ""},
		{restricted, "b.a.example.org", 9000, true, ReasonAllowed, "**.a.example.org@9000", ""}, // the longest line is named
		{restricted, "b.a.example.org", 8000, false, ReasonPort, "", "b.a.example.org:8000"},
		{restricted, "x.example.org", 9000, false, ReasonDenied, "x.example.org@9000", ""},
		{restricted, "a.evil.example.org", 9000, false, ReasonDenied, "**.evil.example.org@1-65535", ""}, // deny wins
		{restricted, "evil.example.org", 9000, true, ReasonAllowed, "**.example.org@9000", ""},           // never the apex
		{restricted, "other.example", 443, false, ReasonName, "", "other.example"},
		{restricted, "other.example", 53, false, ReasonName, "", ""},
		{open, "other.example", 4444, true, ReasonOpen, "", ""},
		{open, "a.evil.example.org", 4444, false, ReasonDenied, "**.evil.example.org@1-65535", ""},
		{RoomPolicy{Mode: None, Allow: restricted.Allow}, "api.example.org", 443, false, ReasonNone, "", "api.example.org"},
		{RoomPolicy{Mode: Restricted}, "api.example.org", 443, false, ReasonName, "", "api.example.org"},
	} {
		d := c.room.Compile().Name(name(t, c.name), c.port)
		line := ""
		if d.Rule != nil {
			line = d.Rule.Line
		}
		if d.Allowed != c.allowed || d.Reason != c.reason || line != c.line || d.Suggest != c.suggest {
			t.Errorf("%s %s:%d: %v %q by %q, suggest %q", c.room.Mode, c.name, c.port, d.Allowed, d.Reason, line, d.Suggest)
		}
	}
	if d := restricted.Compile().Name(Name{}, 443); d.Allowed {
		t.Error("the zero name is allowed")
	}
}

func TestMatcherAddrAndDial(t *testing.T) {
	p := RoomPolicy{
		Mode:  Restricted,
		Allow: rulesOf(t, "10.20.0.0/16@5432", "10.0.0.0/8@5432", "0.0.0.0/0@6000", "::/0@6000", "fd00::/8@5432", "db.internal@5432 private", "web.example@443"),
		Deny:  rulesOf(t, "10.20.30.0/24@1-65535"),
	}
	m := p.Compile()
	open := RoomPolicy{Mode: Open, Deny: p.Deny}.Compile()
	for _, c := range []struct {
		m      *Matcher
		addr   string
		port   uint16
		reason string
	}{
		{m, "10.20.1.1", 5432, ReasonAllowed},
		{m, "::ffff:10.20.1.1", 5432, ReasonAllowed},
		{m, "10.99.1.1", 5432, ReasonAllowed},
		{m, "10.20.30.1", 5432, ReasonDenied},
		{m, "10.20.1.1", 5433, ReasonPort},
		{m, "198.51.100.7", 6000, ReasonAllowed},
		{m, "198.18.0.1", 6000, ReasonAllowed},
		{m, "198.51.100.7", 443, ReasonPort},
		{m, "169.254.169.254", 6000, "metadata"}, // never, not even by 0.0.0.0/0
		{m, "100.100.100.200", 6000, "metadata"},
		{m, "168.63.129.16", 6000, "metadata"},
		{m, "fd00:ec2::254", 5432, "metadata"},
		{m, "127.0.0.1", 6000, "loopback"},
		{m, "::1", 6000, "loopback"},
		{m, "fe80::1", 6000, "link-local"},
		{m, "0.0.0.0", 6000, "unspecified"},
		{m, "64:ff9b::a14:101", 6000, "translated"},
		{m, "169.254.169.254", 80, "metadata"},
		{open, "198.51.100.7", 4444, ReasonOpen},
		{open, "10.1.1.1", 4444, "private"},
		{open, "198.18.0.1", 4444, "benchmark"},
		{open, "10.20.30.1", 4444, ReasonDenied},
	} {
		if d := c.m.Addr(netip.MustParseAddr(c.addr), c.port); d.Reason != c.reason {
			t.Errorf("%s port %d: %+v, want %s", c.addr, c.port, d, c.reason)
		}
	}
	for _, c := range []struct {
		name   string
		port   uint16
		addr   string
		reason string
	}{
		{"web.example", 443, "198.51.100.7", ReasonAllowed},
		{"web.example", 443, "10.1.1.1", "private"}, // rebinding
		{"web.example", 443, "127.0.0.1", "loopback"},
		{"web.example", 443, "::ffff:127.0.0.1", "loopback"},
		{"db.internal", 5432, "192.168.1.1", ReasonAllowed},
		{"db.internal", 5432, "100.64.0.1", ReasonAllowed},
		{"db.internal", 5432, "198.18.0.1", "benchmark"},
		{"db.internal", 5432, "10.20.30.1", ReasonDenied},
		{"db.internal", 5432, "169.254.169.254", "metadata"},
		{"db.internal", 5432, "127.0.0.1", "loopback"},
	} {
		d := m.Dial(m.Name(name(t, c.name), c.port), netip.MustParseAddr(c.addr), c.port)
		if d.Reason != c.reason {
			t.Errorf("%s:%d at %s: %+v, want %s", c.name, c.port, c.addr, d, c.reason)
		}
		if c.reason == "private" && d.Suggest != "{host: web.example, port: 443, private: true}" {
			t.Errorf("suggests %q", d.Suggest)
		}
	}
}

func TestResolvable(t *testing.T) {
	p := RoomPolicy{
		Mode:  Restricted,
		Allow: rulesOf(t, "a.example", "b.example@22", "**.c.example@22,443", "d.example@22"),
		Deny:  rulesOf(t, "b.example@1-65535", "x.c.example@22", "y.c.example@22,443", "d.example@22"),
	}
	for s, want := range map[string]string{
		"a.example": ReasonAllowed, "b.example": ReasonDenied, "z.c.example": ReasonAllowed, "x.c.example": ReasonAllowed,
		"y.c.example": ReasonDenied, "d.example": ReasonDenied, "c.example": ReasonName, "e.example": ReasonName,
	} {
		if d := p.Compile().Resolvable(name(t, s)); d.Reason != want {
			t.Errorf("%s: %+v, want %s", s, d, want)
		}
	}
	open := RoomPolicy{Mode: Open, Deny: p.Deny}.Compile()
	for s, want := range map[string]string{"b.example": ReasonDenied, "x.c.example": ReasonOpen, "e.example": ReasonOpen} {
		if d := open.Resolvable(name(t, s)); d.Reason != want {
			t.Errorf("open: %s: %+v, want %s", s, d, want)
		}
	}
}

func TestRuleCovers(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		want         bool
	}{
		{"**.example.org", "a.example.org", true},
		{"a.example.org@22", "a.example.org", false},
		{"a.example.org@1-1000", "a.example.org@22,443", true},
		{"a.example.org", "a.example.org@443", true},
		{"a.example.org", "a.example.org private", false},
		{"a.example.org private", "a.example.org", true},
		{"10.0.0.0/8@5432", "10.1.0.0/16@5432", true},
		{"10.1.0.0/16@5432", "10.0.0.0/8@5432", false},
		{"10.0.0.0/8@5432", "11.0.0.0/16@5432", false},
		{"::/0@5432", "10.0.0.0/8@5432", false},
		{"10.0.0.0/8@5432", "a.example@5432", false},
		{"a.example@5432", "10.0.0.0/8@5432", false},
	} {
		if got := rule(t, c.outer).Covers(rule(t, c.inner)); got != c.want {
			t.Errorf("%s covers %s: %v", c.outer, c.inner, got)
		}
	}
	// The ports of one line may be covered by several.
	lines := rulesOf(t, "a.example@22", "**.example@443", "a.example@8000-8010")
	for s, want := range map[string]bool{"a.example@22,443": true, "a.example@22,443,8005-8010": true, "a.example@22,80": false, "b.example@22": false} {
		if got := CoveredBy(rule(t, s), lines); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
	if CoveredBy(Rule{Host: pattern(t, "a.example")}, lines) || CoveredBy(rule(t, "a.example"), nil) {
		t.Error("something is covered by nothing")
	}
}

func TestClassify(t *testing.T) {
	for addr, want := range map[string]Class{
		"198.51.100.1": Public, "192.0.2.1": Public, "203.0.113.1": Public, "2001:db8::1": Public, "192.1.0.1": Public, "100.128.0.1": Public,
		"2001:4860::1": Public, "172.32.0.1": Public, "169.255.0.1": Public,
		"10.0.0.1": Private, "172.16.0.1": Private, "172.31.255.255": Private, "192.168.0.1": Private, "fd12::1": Private, "fc00::1": Private,
		"::ffff:10.0.0.1": Private, "100.64.0.1": Shared, "100.127.255.255": Shared, "198.18.0.1": Benchmark, "198.19.255.255": Benchmark,
		"169.254.169.254": Metadata, "::ffff:169.254.169.254": Metadata, "169.254.170.2": Metadata, "100.100.100.200": Metadata,
		"168.63.129.16": Metadata, "fd00:ec2::254": Metadata, "192.0.0.192": Metadata, "fd20:ce::254": Metadata,
		"fd00:42::42": Metadata, "fd00:a9fe:a9fe::1": Metadata, "fd00:c1::a9fe:a9fe": Metadata, "fd00:100::100:200": Metadata, "fd00:42::43": Private,
		"127.0.0.1": Loopback, "127.255.0.1": Loopback, "::1": Loopback, "::ffff:127.0.0.1": Loopback,
		"169.254.0.1": LinkLocal, "fe80::1": LinkLocal, "fe80::1%eth0": LinkLocal, "2001:db8::1%eth0": LinkLocal, "fec0::1": LinkLocal,
		"224.0.0.1": Multicast, "239.1.1.1": Multicast, "ff02::1": Multicast,
		"0.0.0.0": Unspecified, "0.1.2.3": Unspecified, "::": Unspecified,
		"192.0.0.1": Reserved, "240.0.0.1": Reserved, "255.255.255.255": Reserved, "100::1": Reserved,
		"64:ff9b::7f00:1": Translated, "64:ff9b:1::1": Translated, "2002:7f00:1::1": Translated, "2001::1": Translated,
		"::7f00:1": Translated, "::ffff:0:7f00:1": Translated,
	} {
		if got := Classify(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if Classify(netip.Addr{}) != Invalid || Invalid.OpenedBy(&Rule{Private: true}) {
		t.Error("the zero address")
	}
	// What may be opened, and by what.
	private, cidr := rule(t, "a.example private"), rule(t, "0.0.0.0/0@1-65535")
	plain := rule(t, "a.example")
	for c := Invalid; c <= Translated; c++ {
		got := [4]bool{c.OpenedBy(nil), c.OpenedBy(&plain), c.OpenedBy(&private), c.OpenedBy(&cidr)}
		want := [4]bool{}
		switch c {
		case Public:
			want = [4]bool{true, true, true, true}
		case Private, Shared:
			want = [4]bool{false, false, true, true}
		case Benchmark:
			want = [4]bool{false, false, false, true}
		}
		if got != want {
			t.Errorf("%s is opened by nothing, a name, private, cidr: %v, want %v", c, got, want)
		}
	}
}
