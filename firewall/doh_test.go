package firewall

import (
	"strings"
	"testing"
)

// D8: no wildcard and no learning opens a public resolver; a line with its very
// name does. Mode open leaves all but what browsers ask as a question.
func TestDoH(t *testing.T) {
	many := rulesOf(t, "**.dns.google", "**.nextdns.io", "**.cloudflare-dns.com", "**.icloud.com", "**.example.org", "dns.google.com", "abc123.dns.nextdns.io@853")
	restricted := RoomPolicy{Mode: Restricted, Allow: many}
	learning := RoomPolicy{Mode: Restricted, Allow: many, Learn: true}
	open := RoomPolicy{Mode: Open}
	for _, c := range []struct {
		name                string
		port                uint16
		restricted, learned bool // is it allowed?
		open, resolved      bool
		suggest             string
	}{
		{"dns.google", 443, false, false, true, true, "dns.google"},
		{"dns64.dns.google", 443, false, false, true, true, "dns64.dns.google"},
		{"dns.google.com", 443, true, true, true, true, ""},
		{"www.nextdns.io", 443, true, true, true, true, ""},
		{"abc123.dns.nextdns.io", 853, true, true, true, true, ""},
		{"abc123.dns.nextdns.io", 443, false, false, true, true, "abc123.dns.nextdns.io"},
		{"other.dns.nextdns.io", 853, false, false, true, true, "other.dns.nextdns.io:853"},
		{"mozilla.cloudflare-dns.com", 443, false, false, true, true, "mozilla.cloudflare-dns.com"},
		{"www.cloudflare.com", 443, false, true, true, true, "www.cloudflare.com"},
		{"mask.icloud.com", 443, false, false, false, false, ""},
		{"use-application-dns.net", 443, false, false, false, false, ""},
		{"gateway.icloud.com", 443, true, true, true, true, ""},
	} {
		n, err := ParseName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		for what, x := range map[string]struct {
			d    Decision
			want bool
		}{
			"restricted": {restricted.Compile().Name(n, c.port), c.restricted},
			"learning":   {learning.Compile().Name(n, c.port), c.learned},
			"open":       {open.Compile().Name(n, c.port), c.open},
			"resolved":   {open.Compile().Resolvable(n), c.resolved},
		} {
			if x.d.Allowed != x.want {
				t.Errorf("%s %s:%d: %+v", what, c.name, c.port, x.d)
			}
		}
		if d := restricted.Compile().Name(n, c.port); !d.Allowed && d.Suggest != c.suggest {
			t.Errorf("%s:%d: suggests %q, not %q", c.name, c.port, d.Suggest, c.suggest)
		}
		if d := learning.Compile().Resolvable(n); IsDoH(n) && d.Allowed && d.Rule.Host.IsWildcard() {
			t.Errorf("learning: %s resolves: %+v", c.name, d)
		}
	}
}

// Every entry is a name, stands there once, and a canary is one of them. None
// is the only name of a provider's site.
func TestDoHList(t *testing.T) {
	for _, set := range []map[string]bool{resolverNames(), canaryNames()} {
		if len(set) == 0 {
			t.Fatal("the list is empty")
		}
		for s := range set {
			n, err := ParseName(s)
			if err != nil || n.String() != s || isSpecial(n) || !IsDoH(n) {
				t.Errorf("%q: %v", s, err)
			}
			if _, up, _ := strings.Cut(s, "."); under(set, Name{up}) {
				t.Errorf("%s is under another entry", s)
			}
		}
	}
	for _, s := range []string{"google.com", "cloudflare.com", "quad9.net", "opendns.com", "nextdns.io", "icloud.com", "adguard.com", "mullvad.net", "example.org"} {
		if n, _ := ParseName(s); IsDoH(n) {
			t.Errorf("%s is taken for a resolver", s)
		}
	}
}
