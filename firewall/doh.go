package firewall

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// resolverNames are names of public resolvers that answer over HTTPS, TLS or QUIC,
// and of relays that carry such questions (RFC 8484, 7858, 9250, 9230). A
// program that reaches one looks up names unseen by the guard, so wildcards and
// learning don't open them or names below; a line with the exact name does. The names
// are from the providers' own pages, most of them also in curl's table of servers
// (github.com/curl/curl/wiki/DNS-over-HTTPS) and in AdGuard's "Known DNS Providers".
// No such list is complete: it keeps programs that switch to DoH by themselves, and
// wildcards meant for something else, from bypassing the guard. Names that are also a
// provider's web site are left out if the resolver has its own name.
var resolverNames = names(`
	dns.google dns.google.com 8888.google
	cloudflare-dns.com dns.cloudflare.com one.one.one.one cloudflare-gateway.com
	dns.quad9.net dns9.quad9.net dns10.quad9.net dns11.quad9.net dns12.quad9.net dns-nosec.quad9.net
	dns.opendns.com doh.opendns.com familyshield.opendns.com sandbox.opendns.com dns.umbrella.com doh.umbrella.com
	adguard-dns.com dns.adguard.com dns-family.adguard.com dns-unfiltered.adguard.com
	dns.nextdns.io
	dns.mullvad.net doh.mullvad.net
	doh.cleanbrowsing.org family-filter-dns.cleanbrowsing.org adult-filter-dns.cleanbrowsing.org security-filter-dns.cleanbrowsing.org
	dns.controld.com freedns.controld.com
	doh.dns.sb doh.sb dot.sb
	doh.libredns.gr dot.libredns.gr noads.libredns.gr
	dns.alidns.com doh.pub dot.pub dns.pub doh.360.cn dot.360.cn
	dns.yandex.net
	mask.icloud.com mask-h2.icloud.com mask-api.icloud.com mask-canary.icloud.com doh.dns.apple.com
	dns0.eu protective.joindns4.eu child.joindns4.eu noads.joindns4.eu child-noads.joindns4.eu unfiltered.joindns4.eu
	wikimedia-dns.org dns.digitale-gesellschaft.ch dns.switch.ch
	canadianshield.cira.ca public.dns.iij.jp dns.twnic.tw odvr.nic.cz dns.cert.ee ordns.he.net
	doh.xfinity.com dot.xfinity.com doh-01.spectrum.com doh-02.spectrum.com
	doh.applied-privacy.net dot1.applied-privacy.net dns.aa.net.uk doh.ffmuc.net dot.ffmuc.net dns.njal.la
	anycast.uncensoreddns.org unicast.uncensoreddns.org anycast.censurfridns.dk unicast.censurfridns.dk
	dnsforge.de dns.bitdefender.net dns.comss.one dns.east.comss.one router.comss.one
	sky.rethinkdns.com max.rethinkdns.com basic.rethinkdns.com
	blahdns.com ahadns.net tiar.app tiarap.org ada.openbld.net ric.openbld.net
	doh.crypto.sx doh.powerdns.org
`)

// canaryNames are names that programs look up to learn whether they may bypass the
// network's resolver: Firefox (support.mozilla.org, "Canary domain") and iCloud Private
// Relay (developer.apple.com, "Prepare your network or web server for iCloud Private
// Relay"). NXDOMAIN means no.
var canaryNames = names("use-application-dns.net mask.icloud.com mask-h2.icloud.com mask-canary.icloud.com")

// IsDoH reports whether a name, or one above it, is that of a public resolver
// over HTTPS, TLS or QUIC, of a relay to one, or asked for to learn whether one
// may be used.
func IsDoH(n Name) bool { return under(resolverNames(), n) || isCanary(n) }

// DoHNames returns the names that [IsDoH] knows, sorted; it has those below them, too.
func DoHNames() []string {
	all := maps.Clone(resolverNames())
	maps.Copy(all, canaryNames())
	return slices.Sorted(maps.Keys(all))
}

// isCanary reports whether a name, or one above it, is asked for to learn whether
// another resolver may be used.
func isCanary(n Name) bool { return under(canaryNames(), n) }

// names returns a function that makes the set at its first call: most programs never
// need it.
func names(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		m := map[string]bool{}
		for s := range strings.FieldsSeq(list) {
			m[s] = true
		}
		return m
	})
}

// under reports whether a name or one above it is in the set.
func under(set map[string]bool, n Name) bool {
	for s := n.s; s != ""; {
		if set[s] {
			return true
		}
		_, s, _ = strings.Cut(s, ".")
	}
	return false
}
