package firewall

import (
	"net/netip"
	"testing"
)

func TestCoveredByRangesTogether(t *testing.T) {
	cidr := func(ports []PortRange, list ...string) (out []Rule) {
		for _, s := range list {
			out = append(out, Rule{CIDR: netip.MustParsePrefix(s), Ports: ports})
		}
		return out
	}
	ssh, both := []PortRange{{22, 22}}, []PortRange{{22, 23}}
	for _, tt := range []struct {
		name string
		r    Rule
		by   []Rule
		want bool
	}{
		{"two halves", cidr(ssh, "10.0.0.0/23")[0], cidr(ssh, "10.0.0.0/24", "10.0.1.0/24"), true},
		{"three parts", cidr(ssh, "10.0.0.0/23")[0], cidr(ssh, "10.0.0.0/24", "10.0.1.0/25", "10.0.1.128/25"), true},
		{"one half", cidr(ssh, "10.0.0.0/23")[0], cidr(ssh, "10.0.0.0/24", "10.0.2.0/24"), false},
		{"a hole of one address", cidr(ssh, "10.0.0.0/30")[0], cidr(ssh, "10.0.0.0/32", "10.0.0.2/31"), false},
		{"other ports", cidr(both, "10.0.0.0/23")[0], cidr(ssh, "10.0.0.0/24", "10.0.1.0/24"), false},
		{"IPv6", cidr(ssh, "fd00::/8")[0], cidr(ssh, "fd00::/9", "fd80::/9"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CoveredBy(tt.r, tt.by); got != tt.want {
				t.Errorf("CoveredBy = %v, want %v", got, tt.want)
			}
		})
	}
}

// What these say of patterns is what a matcher decides.
func TestOwnLines(t *testing.T) {
	pattern := func(s string) HostPattern {
		p, err := ParseHostPattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, s := range []string{"dns.google", "use-application-dns.net", "api.example.org", "printer.local", "printer", "x.arpa", "mask.icloud.com"} {
		p := pattern(s)
		n, _ := p.Name()
		open := RoomPolicy{Mode: Open}.Compile().Name(n, 443).Allowed
		if p.InOpen() != open {
			t.Errorf("%s: InOpen = %v, the matcher says %v", s, p.InOpen(), open)
		}
		parent := Rule{Host: HostPattern{hostMany, n.s[max(0, len(n.s)-3):]}, Ports: []PortRange{AllPorts}}
		if at := len(n.s) - len(parent.Host.name) - 1; at < 1 || n.s[at] != '.' {
			continue
		}
		wide := RoomPolicy{Mode: Restricted, Allow: []Rule{parent}}.Compile().Name(n, 443).Allowed
		if p.OnlyByName() == wide {
			t.Errorf("%s: OnlyByName = %v, by a wildcard the matcher says %v", s, p.OnlyByName(), wide)
		}
	}
	if !pattern("*.example.org").InOpen() || pattern("**.printer.local").InOpen() {
		t.Error("InOpen of wildcards")
	}
}

func TestWithoutDenied(t *testing.T) {
	rule := func(s string, ports ...PortRange) Rule {
		p, err := ParseHostPattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return Rule{Host: p, Ports: ports, Upload: Budget{Bytes: 1, Per: 1}, ECH: true}
	}
	deny := func(s string, ports ...PortRange) Rule { return Rule{Host: rule(s).Host, Ports: ports} }
	web := PortRange{80, 443}
	got := WithoutDenied([]Rule{rule("a.example.org", web), rule("**.example.org", web), rule("b.example.net", web), {Template: "${X:?}", Ports: []PortRange{web}}},
		[]Rule{deny("*.example.org", AllPorts), deny("b.example.net", PortRange{443, 443}), {Template: "${X:?}", Ports: []PortRange{AllPorts}}})
	if len(got) != 2 || got[0].Host.String() != "**.example.org" || FormatPorts(got[1].Ports) != "80-442" {
		t.Errorf("got %+v", got)
	}
}
