package proxy

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
)

func sameAddr(s string, a authority) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip == a.addr
}

// FuzzAuthority is N9: a host that is accepted is either an address that every
// parser reads as that address, or a name that none takes for an address and that
// stands in a DNS question as it was decided on.
func FuzzAuthority(f *testing.F) {
	for _, s := range []string{
		"a.example.org", "a.example.org:443", "127.0.0.1:80", "[::1]:80", "0x7f.1", "2130706433", "017700000001", "127.1", "1.2.3.4.", "::ffff:127.0.0.1",
		"[::ffff:127.0.0.1]", "[fe80::1%lo]:80", "a\x00b", "user@a", "a.example.org.", "xn--bcher-kva.example", "a..b", "%61.example.org", "a:b:1", "[a]:1", "0x", "a.0x1", "1e3.example", "a.1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAuthority(s, 80)
		if err != nil {
			return
		}
		if a.addr.IsValid() == !a.name.IsZero() || a.port == 0 {
			t.Fatalf("%q: %+v", s, a)
		}
		// The dialler gets host and port joined and cuts them again.
		host, port, err := net.SplitHostPort(net.JoinHostPort(a.host(), strconv.Itoa(int(a.port))))
		if err != nil || host != a.host() || port != strconv.Itoa(int(a.port)) {
			t.Fatalf("%q: %q %q %v", s, host, port, err)
		}
		if strings.LastIndexByte(s, ':') > strings.LastIndexByte(s, ']') {
			h, p, err := net.SplitHostPort(s)
			if err != nil || p != port || !strings.EqualFold(h, host) && !sameAddr(h, a) {
				t.Fatalf("%q: net says %q %q %v, decided on %q %q", s, h, p, err, host, port)
			}
		}
		if a.addr.IsValid() {
			if ip := net.ParseIP(a.host()); ip == nil || ip.String() != a.addr.String() || a.addr.Zone() != "" || a.addr.Is4In6() {
				t.Fatalf("%q: %v, net says %v", s, a.addr, ip)
			}
			return
		}
		name := a.host()
		if net.ParseIP(name) != nil || looksNumeric(name) {
			t.Fatalf("%q: %q is an address to somebody", s, name)
		}
		again, err := firewall.ParseName(name)
		if err != nil || again != a.name {
			t.Fatalf("%q: %q reads back as %q, %v", s, name, again, err)
		}
		wire := make([]byte, 300)
		n, err := dns.PackDomainName(name+".", wire, 0, nil, false)
		if err != nil {
			t.Fatalf("%q: no DNS question can be asked: %v", s, err)
		}
		if asked, _, err := dns.UnpackDomainName(wire[:n], 0); err != nil || asked != name+"." {
			t.Fatalf("%q: decided on %q, asked for %q, %v", s, name, asked, err)
		}
	})
}

// looksNumeric reports whether inet_aton(3) or a browser (WHATWG URL, "ends in a
// number") would take a name for an IPv4 address.
func looksNumeric(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	rest, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(rest, "0123456789abcdef") == ""
}
