package firewall

import "net/netip"

// Ruleset is the netfilter configuration of a room as data, in the terms of
// iptables(8). It depends only on the ports that the policy mentions, never on
// names or addresses. Two forms are made of it: [Ruleset.Text], and the netlink
// messages of package room.
//
// It isn't what isolates a worker: a room has no interface but loopback (B20). It
// redirects connections to the guard and makes everything else fail at once.
type Ruleset struct {
	// IPv4 and IPv6 hold the tables of one family each, in the order in which
	// iptables-save prints them.
	IPv4, IPv6 []Table
}

// Family is IPv4 or IPv6.
type Family int

// The families.
const (
	V4 Family = 4
	V6 Family = 6
)

// Tables returns the tables of a family.
func (r Ruleset) Tables(f Family) []Table {
	if f == V6 {
		return r.IPv6
	}
	return r.IPv4
}

// Table is an iptables table: "filter" or "nat".
type Table struct {
	Name   string
	Chains []Chain
}

// Chain is a built-in chain, which has a Policy, or a user-defined one, which has
// none.
type Chain struct {
	Name   string
	Policy Verdict // "" for a user-defined chain
	Rules  []ChainRule
}

// Verdict is a policy or a target without options.
type Verdict string

// The verdicts.
const (
	Accept Verdict = "ACCEPT"
	Drop   Verdict = "DROP"
	Return Verdict = "RETURN"
)

// ChainRule is one rule: its matches, all of which must apply, and its target. Zero
// matches are absent.
type ChainRule struct {
	Destination netip.Prefix // -d
	Protocol    Protocol     // -p
	Ports       PortRange    // -m tcp or udp, --dport; needs Protocol
	NotDNAT     bool         // -m conntrack ! --ctstate DNAT: it was not redirected
	Target      Target
}

// Protocol is an IP protocol number; 0 means any.
type Protocol uint8

// The protocols that rules name.
const (
	TCP Protocol = 6
	UDP Protocol = 17
)

// Target is what a rule does; exactly one field is set.
type Target struct {
	Verdict  Verdict
	Jump     string     // name of a chain
	Redirect uint16     // REDIRECT --to-ports
	Log      *NFLog     // NFLOG
	Reject   RejectWith // REJECT --reject-with
}

// NFLog is the target NFLOG.
type NFLog struct {
	Group     uint16
	Size      uint32 // bytes of the packet that are copied
	Threshold uint16 // packets that the kernel gathers before it sends
}

// RejectWith is the response of the target REJECT.
type RejectWith int

// The responses. Prohibited is icmp-admin-prohibited or icmp6-adm-prohibited.
const (
	RejectReset RejectWith = iota + 1
	RejectProhibited
)

// Names of our chains.
const (
	ChainNAT  = "WS_NAT"
	ChainOut  = "WS_OUT"
	ChainIn   = "WS_IN"
	ChainDeny = "WS_DENY"
)

// RulesetOptions are the properties that the ruleset of a room depends on.
type RulesetOptions struct {
	// Ports are those of the policy besides 53, 80 and 443: [RedirectPorts].
	Ports []PortRange
	// Open redirects every TCP connection to the guard.
	Open bool
}

// RedirectPorts returns the ports that lines of the policy allow besides 80 and
// 443, which every room redirects, and 53, which is the guard's DNS: they
// become rules of their own.
func RedirectPorts(p RoomPolicy) []PortRange {
	var all []PortRange
	for i := range p.Allow {
		if p.Allow[i].Endpoint.IsZero() { // the others' are dialled by the guard alone
			all = append(all, p.Allow[i].Ports...)
		}
	}
	return SubtractPorts(all, []PortRange{{53, 53}, {80, 80}, {443, 443}})
}

// MaxCarriedPorts is how many ports of [RedirectPorts] a worker with a kernel of its own may
// have: a relay listens at each (B28).
const MaxCarriedPorts = 128

// ToldPorts are often tried, so the relay of a worker with a kernel of its own accepts at them
// whatever the policy has, and their denials are counted (B28). They are below 1024, where no
// worker listens in other rooms either.
var ToldPorts = []uint16{20, 21, 22, 23, 25, 110, 119, 143, 389, 445, 465, 554, 563, 587, 636, 853, 873, 989, 990, 993, 995}

// NewRuleset returns the ruleset of a room. Ports are sorted and joined; each
// range is a separate rule, so that the list has no limit and needs no
// kernel module beyond xt_tcpudp.
func NewRuleset(o RulesetOptions) Ruleset {
	return Ruleset{
		IPv4: tables(netip.MustParsePrefix("127.0.0.0/8"), o),
		IPv6: tables(netip.MustParsePrefix("::1/128"), o),
	}
}

// NATRules returns the rules of [ChainNAT] of a family, which a change of the policy's
// ports replaces.
func NATRules(f Family, o RulesetOptions) []ChainRule {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	if f == V6 {
		loopback = netip.MustParsePrefix("::1/128")
	}
	return natRules(loopback, o)
}

func natRules(loopback netip.Prefix, o RulesetOptions) []ChainRule {
	to := func(p Protocol, ports PortRange, port uint16) ChainRule {
		return ChainRule{Protocol: p, Ports: ports, Target: Target{Redirect: port}}
	}
	rules := []ChainRule{
		to(UDP, PortRange{53, 53}, PortDNS),
		to(TCP, PortRange{53, 53}, PortDNS),
		{Destination: loopback, Target: Target{Verdict: Return}},
		to(TCP, PortRange{80, 80}, PortHTTP),
		to(TCP, PortRange{443, 443}, PortTLS),
	}
	for _, p := range NormalizePorts(o.Ports) {
		rules = append(rules, to(TCP, p, PortTCP))
	}
	if o.Open {
		rules = append(rules, to(TCP, PortRange{}, PortTCP))
	}
	return rules
}

func tables(loopback netip.Prefix, o RulesetOptions) []Table {
	jump := func(chain string) ChainRule { return ChainRule{Target: Target{Jump: chain}} }
	// Everything leaves and arrives on lo, responses and resets with a foreign source
	// address: only the destination distinguishes loopback from the rest.
	local := ChainRule{Destination: loopback, Target: Target{Verdict: Accept}}
	direct := func(p Protocol, ports PortRange) ChainRule {
		return ChainRule{Protocol: p, Ports: ports, NotDNAT: true, Target: Target{Jump: ChainDeny}}
	}
	return []Table{
		{Name: "filter", Chains: []Chain{
			{Name: "INPUT", Policy: Drop, Rules: []ChainRule{jump(ChainIn)}},
			{Name: "FORWARD", Policy: Drop},
			{Name: "OUTPUT", Policy: Drop, Rules: []ChainRule{jump(ChainOut)}},
			{Name: ChainDeny, Rules: []ChainRule{
				{Target: Target{Log: &NFLog{Group: NFLogGroup, Size: 128, Threshold: 1}}},
				{Protocol: TCP, Target: Target{Reject: RejectReset}},
				{Target: Target{Reject: RejectProhibited}},
			}},
			{Name: ChainIn, Rules: []ChainRule{
				direct(TCP, PortRange{PortDNS, PortTCP}),
				direct(UDP, PortRange{PortDNS, PortDNS}),
				local,
				jump(ChainDeny),
			}},
			{Name: ChainOut, Rules: []ChainRule{local, jump(ChainDeny)}},
		}},
		{Name: "nat", Chains: []Chain{
			{Name: "PREROUTING", Policy: Accept},
			{Name: "INPUT", Policy: Accept},
			{Name: "OUTPUT", Policy: Accept, Rules: []ChainRule{jump(ChainNAT)}},
			{Name: "POSTROUTING", Policy: Accept},
			{Name: ChainNAT, Rules: natRules(loopback, o)},
		}},
	}
}
