package egressacl

import (
	"net/netip"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// row is a name or an address with a port. not says why proxies decide otherwise, and then
// they must; notSquid why squid alone does.
type row struct {
	host          string
	port          uint16
	not, notSquid string
	alone         bool // no other row has the name
}

// addressesOf are what names have; others don't exist.
var addressesOf = map[string][]string{
	"api.example.org":           {"198.51.100.10", "2001:db8:1::10"},
	"git.example.org":           {"198.51.100.22"},
	"high.example.org":          {"198.51.100.10"},
	"twice.example.org":         {"198.51.100.10"},
	"a.one.example.org":         {"198.51.100.10"},
	"b.many.example.org":        {"198.51.100.10"},
	"a.b.c.many.example.org":    {"198.51.100.10"},
	"secret.many.example.org":   {"198.51.100.10"},
	"x.secret.many.example.org": {"198.51.100.10"},
	"x.closed.many.example.org": {"198.51.100.10"},
	"p.ports.example.org":       {"198.51.100.10"},
	"db.example.org":            {"10.1.1.1"},
	"nas.lan.example.org":       {"192.168.7.7"},
	"narrow.lan.example.org":    {"192.168.7.7"},
	"loop.lan.example.org":      {"127.0.0.1"},
	"link.lan.example.org":      {"169.254.169.254"},
	"bench.lan.example.org":     {"198.18.0.1"},
	"inside.one.example.org":    {"10.1.1.1"},
	"loop.one.example.org":      {"127.0.0.1"},
	"six.one.example.org":       {"::1"},
	"both.one.example.org":      {"198.51.100.10", "10.1.1.1"},
	"range.one.example.org":     {"10.20.1.1"},
	"denied.one.example.org":    {"198.51.100.100"},
	"evil.example.net":          {"198.51.100.66"},
	"wiki.internal":             {"198.51.100.10"},
	"dns.quad9.net":             {"198.51.100.10"},
	"dns9.quad9.net":            {"198.51.100.10"},
	"x.dns9.quad9.net":          {"198.51.100.10"},
	"www.quad9.net":             {"198.51.100.10"},
	"tickets.one.example.org":   {"198.51.100.10"},
	"upload.example.org":        {"198.51.100.10"},
	"browser.example.org":       {"198.51.100.10"},
}

// matrix is what guard and proxy are asked about.
func matrix() []row {
	long := strings.Repeat("a", 41)
	rows := []row{
		{host: "api.example.org", port: 443}, {host: "api.example.org", port: 80}, {host: "API.Example.ORG", port: 443},
		{host: "api.example.org", port: 22}, {host: "api.example.org", port: 8443}, {host: "api.example.org", port: 444}, {host: "api.example.org", port: 1},
		{host: "x.api.example.org", port: 443}, {host: "api.example.org.evil.example.net", port: 443}, {host: "xapi.example.org", port: 443},
		{host: "example.org", port: 443}, {host: "evil.example.net", port: 443, alone: true}, {host: "org", port: 443},
		{host: "git.example.org", port: 22}, {host: "git.example.org", port: 443}, {host: "git.example.org", port: 2222},
		{host: "high.example.org", port: 8000}, {host: "high.example.org", port: 8005}, {host: "high.example.org", port: 8010}, {host: "high.example.org", port: 8011}, {host: "high.example.org", port: 7999}, {host: "high.example.org", port: 443},
		{host: "twice.example.org", port: 8001}, {host: "twice.example.org", port: 9000}, {host: "twice.example.org", port: 8002},
		{host: "one.example.org", port: 443}, {host: "a.one.example.org", port: 443}, {host: "a.one.example.org", port: 80}, {host: "a.one.example.org", port: 8443}, {host: "b.a.one.example.org", port: 443}, {host: "xone.example.org", port: 443}, {host: "A.ONE.example.org", port: 443},
		{host: "many.example.org", port: 443}, {host: "b.many.example.org", port: 443}, {host: "a.b.c.many.example.org", port: 443}, {host: "b.many.example.org", port: 8080},
		{host: "secret.many.example.org", port: 443, alone: true}, {host: "secret.many.example.org", port: 80}, {host: "x.secret.many.example.org", port: 443},
		{host: "closed.many.example.org", port: 443}, {host: "x.closed.many.example.org", port: 443}, {host: "x.closed.many.example.org", port: 80}, {host: "y.x.closed.many.example.org", port: 443},
		{host: "p.ports.example.org", port: 8443}, {host: "p.ports.example.org", port: 443}, {host: "ports.example.org", port: 8443},
		{host: "db.example.org", port: 5432}, {host: "db.example.org", port: 5433},
		{host: "nas.lan.example.org", port: 443}, {host: "narrow.lan.example.org", port: 443}, {host: "loop.lan.example.org", port: 443}, {host: "link.lan.example.org", port: 80}, {host: "bench.lan.example.org", port: 443},
		{host: "inside.one.example.org", port: 443}, {host: "loop.one.example.org", port: 443}, {host: "six.one.example.org", port: 443}, {host: "denied.one.example.org", port: 443},
		{host: "wiki.internal", port: 443}, {host: "ready.workshop.internal", port: 80}, {host: "localhost", port: 80}, {host: "x.localhost", port: 443}, {host: "x.onion", port: 443},
		{host: "dns.quad9.net", port: 443}, {host: "dns9.quad9.net", port: 443}, {host: "x.dns9.quad9.net", port: 443}, {host: "www.quad9.net", port: 443},
		{host: "browser.example.org", port: 443},
		{host: "tickets.one.example.org", port: 443}, {host: "tickets.example.org", port: 80},
		{host: "198.51.100.129", port: 443}, {host: "198.51.100.129", port: 80}, {host: "198.51.100.127", port: 443}, {host: "198.51.100.144", port: 443}, {host: "198.51.100.137", port: 443}, {host: "198.51.100.140", port: 443}, {host: "198.51.100.10", port: 443}, {host: "198.51.100.100", port: 443},
		{host: "[2001:db8:1:5::1]", port: 443}, {host: "[2001:db8:1:5::1]", port: 80}, {host: "[2001:db8:1:6::1]", port: 443}, {host: "[::1]", port: 443}, {host: "[fe80::1]", port: 443},
		{host: "127.0.0.1", port: 443}, {host: "169.254.169.254", port: 80}, {host: "10.1.1.1", port: 443}, {host: "10.20.1.1", port: 5432}, {host: "10.21.1.1", port: 5432}, {host: "0.0.0.0", port: 443},
		{host: "2130706433", port: 443}, {host: "0x7f.1", port: 443}, {host: "127.1", port: 443}, {host: "017700000001", port: 443}, {host: "[::ffff:127.0.0.1]", port: 443}, {host: "[::ffff:169.254.169.254]", port: 80}, {host: "[64:ff9b::a9fe:a9fe]", port: 443}, {host: "168427777", port: 443},
		{host: "SECRET.many.example.org", port: 443}, {host: "secret.many.example.org.", port: 443}, {host: "tickets.one.example.org.", port: 443}, {host: "api.example.org..", port: 443, notSquid: "it takes the dots off"}, {host: ".api.example.org", port: 443}, {host: "api%2eexample.org", port: 443}, {host: "api..example.org", port: 443},
		{host: "a_b.one.example.org", port: 443}, {host: "-a.one.example.org", port: 443},

		{host: "upload.example.org", port: 443, not: "a budget can't be kept: export-closed"},
		{host: "both.one.example.org", port: 443, notSquid: "a name with one closed address is closed"},
		{host: "range.one.example.org", port: 443, not: "a range opens no name: export-narrower"},
		{host: "api.example.org.", port: 443, notSquid: "it takes the dot off"},
		{host: "3325256833", port: 443, notSquid: "another form of 198.51.100.129"},
		{host: long + ".one.example.org", port: 443, not: "the matcher has no bound of labels, the guard has"},
	}
	return rows
}

// guards is what the guard decides: by the name, then by each address that it has.
func guards(m *firewall.Matcher, host string, port uint16, addrs []string) bool {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return m.Addr(a, port).Allowed
	}
	n, err := firewall.ParseName(host)
	if err != nil {
		return false
	}
	d := m.Name(n, port)
	if len(addrs) == 0 {
		return d.Allowed
	}
	for _, a := range addrs {
		if m.Dial(d, netip.MustParseAddr(a), port).Allowed {
			return true
		}
	}
	return false
}
