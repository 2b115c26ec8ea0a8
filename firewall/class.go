package firewall

import "net/netip"

// Class is the class of an address. All classes but [Public] are on the never-list,
// which egress checks on the address itself immediately before connect (B26, B31);
// [Class.OpenedBy] reports which classes a rule can open.
type Class int

// The classes. The zero Class is an invalid address and is never opened.
const (
	Invalid     Class = iota
	Public            // anything in no other class, including TEST-NETs and 2001:db8::/32
	Private           // RFC 1918, unique local fc00::/7 (RFC 4193)
	Shared            // 100.64.0.0/10 (RFC 6598)
	Benchmark         // 198.18.0.0/15 (RFC 2544)
	Metadata          // the cloud's metadata and agent services
	Loopback          // 127.0.0.0/8, ::1
	LinkLocal         // 169.254.0.0/16, fe80::/10, the old site-local fec0::/10
	Multicast         // 224.0.0.0/4, ff00::/8
	Unspecified       // 0.0.0.0/8, ::
	Reserved          // 240.0.0.0/4 with broadcast, 192.0.0.0/24
	Translated        // IPv6 forms that contain an IPv4 address: NAT64, 6to4, Teredo, IPv4-compatible
)

var classNames = [...]string{
	Invalid: "invalid", Public: "public", Private: "private", Shared: "shared", Benchmark: "benchmark",
	Metadata: "metadata", Loopback: "loopback", LinkLocal: "link-local", Multicast: "multicast",
	Unspecified: "unspecified", Reserved: "reserved", Translated: "translated",
}

// String returns the name of the class in events, such as "link-local".
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "invalid"
	}
	return classNames[c]
}

// classes in the order in which they are looked up: metadata services are inside
// ranges of other classes. Sources: IANA's special-purpose registries (RFC 6890);
// metadata addresses from the providers' documentation.
var classes = []struct {
	prefix netip.Prefix
	class  Class
}{
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata}, // AWS, GCP, Azure, OpenStack …
	{netip.MustParsePrefix("169.254.170.2/32"), Metadata},   // AWS ECS task credentials
	{netip.MustParsePrefix("169.254.170.23/32"), Metadata},  // AWS EKS pod identity
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},   // Azure's host agent, a public address
	{netip.MustParsePrefix("192.0.0.192/32"), Metadata},     // Oracle, classic
	{netip.MustParsePrefix("fd00:ec2::/32"), Metadata},      // AWS: metadata, DNS, time
	{netip.MustParsePrefix("fd20:ce::254/128"), Metadata},   // GCP
	// The sources of these are cloud-init's documentation and code (datasources
	// Scaleway, Akamai and Oracle; for Alibaba its tests).
	{netip.MustParsePrefix("fd00:42::42/128"), Metadata},        // Scaleway
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), Metadata},  // Akamai (Linode)
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), Metadata}, // Oracle
	{netip.MustParsePrefix("fd00:100::100:200/128"), Metadata},  // Alibaba

	{netip.MustParsePrefix("0.0.0.0/8"), Unspecified},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), Shared},
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
	{netip.MustParsePrefix("192.88.99.0/24"), Translated}, // 6to4 relays (RFC 7526)
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Benchmark},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},

	{netip.MustParsePrefix("::/128"), Unspecified},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("::/96"), Translated},           // IPv4-compatible (RFC 4291 §2.5.5.1)
	{netip.MustParsePrefix("::ffff:0:0:0/96"), Translated}, // SIIT (RFC 2765)
	{netip.MustParsePrefix("64:ff9b::/96"), Translated},    // NAT64 (RFC 6052)
	{netip.MustParsePrefix("64:ff9b:1::/48"), Translated},  // local NAT64 (RFC 8215)
	{netip.MustParsePrefix("100::/64"), Reserved},          // discard (RFC 6666)
	{netip.MustParsePrefix("2001::/32"), Translated},       // Teredo (RFC 4380)
	{netip.MustParsePrefix("2002::/16"), Translated},       // 6to4 (RFC 3056)
	{netip.MustParsePrefix("5f00::/16"), Reserved},         // SRv6 SIDs (RFC 9602)
	{netip.MustParsePrefix("fc00::/7"), Private},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), LinkLocal},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
}

// Classify returns the class of an address. An IPv4-mapped IPv6 address has
// the class of the IPv4 address that the kernel would dial; one with a zone is
// link-local.
func Classify(a netip.Addr) Class {
	if !a.IsValid() {
		return Invalid
	}
	if a.Zone() != "" {
		return LinkLocal
	}
	a = a.Unmap()
	for i := range classes {
		if classes[i].prefix.Contains(a) {
			return classes[i].class
		}
	}
	return Public
}

// OpenedBy reports whether a connection that rule r allows may go to an address
// of the class: private and shared ranges need `private: true` or a cidr rule,
// the benchmark range a cidr rule, all others are never opened. With r nil
// (mode open) only public addresses are.
func (c Class) OpenedBy(r *Rule) bool {
	switch c {
	case Public:
		return true
	case Private, Shared:
		return r != nil && (r.Private || r.CIDR.IsValid())
	case Benchmark:
		return r != nil && r.CIDR.IsValid()
	}
	return false
}

// Openable reports whether some rule can open the class.
func (c Class) Openable() bool {
	return c == Public || c == Private || c == Shared || c == Benchmark
}
