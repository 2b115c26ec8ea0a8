package hostfirewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// verdict is what becomes of a packet that a rule matches. Nothing is accepted: what
// passes is left to the other rules of the machine.
type verdict int

const (
	pass    verdict = iota
	refuse          // with an error at once, to who sends it here
	drop            // without an answer, to who comes from elsewhere
	never           // on to the ranges that nothing opens
	private         // on to the ranges that only a line opens
)

// The chains. never and private are called by the others.
const (
	chainForward = "FORWARD"
	chainInput   = "INPUT"
	chainOutput  = "OUTPUT"
	chainNever   = "NEVER"
	chainPrivate = "PRIVATE"
)

var chains = []string{chainForward, chainInput, chainOutput, chainNever, chainPrivate}

// family is 4 or 6; 0: both.
type family int

// match is one condition, as both programs write it.
type match struct {
	of       family
	ipt, nft string
}

type rule struct {
	matches []match
	verdict verdict
	why     string
}

// of is the family of a rule; ok is false where its conditions exclude each other.
func (r rule) of() (f family, ok bool) {
	for _, m := range r.matches {
		if m.of != 0 && f != 0 && m.of != f {
			return 0, false
		}
		f = max(f, m.of)
	}
	return f, true
}

func in(name string) match  { return match{ipt: "-i " + name, nft: `iifname "` + name + `"`} }
func out(name string) match { return match{ipt: "-o " + name, nft: `oifname "` + name + `"`} }

func familyOf(a netip.Addr) (family, string) {
	if a.Is4() {
		return 4, "ip"
	}
	return 6, "ip6"
}

func notFrom(a netip.Addr) match {
	f, ip := familyOf(a)
	return match{f, "! -s " + a.String(), fmt.Sprintf("%s saddr != %s", ip, a)}
}

func to(p netip.Prefix) match {
	f, ip := familyOf(p.Addr())
	return match{f, "-d " + p.String(), fmt.Sprintf("%s daddr %s", ip, p)}
}

func port(protocol string, p firewall.PortRange) match {
	first, last := strconv.Itoa(int(p.First)), ""
	if p.Last != p.First {
		last = strconv.Itoa(int(p.Last))
	}
	join := func(by string) string { return strings.TrimSuffix(first+by+last, by) }
	return match{ipt: "-p " + protocol + " --dport " + join(":"), nft: protocol + " dport " + join("-")}
}

var (
	tcp    = match{ipt: "-p tcp", nft: "meta l4proto tcp"}
	only4  = match{4, "", "meta nfproto ipv4"}
	only6  = match{6, "", "meta nfproto ipv6"}
	beyond = match{ipt: "! -i lo", nft: `iifname != "lo"`}
	own    = match{ipt: "-m addrtype --dst-type LOCAL", nft: "fib daddr type local"}
	// answer is of a connection that somebody else began, with its errors. The
	// direction keeps out what was connected before a rule closed it.
	answer = match{ipt: "-m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY", nft: "ct state established,related ct direction reply"}
	// neighbours is how addresses of IPv6 are found on a link: without it nothing is.
	neighbours = []match{
		{6, "-p icmpv6 --icmpv6-type neighbour-solicitation", "icmpv6 type nd-neighbor-solicit"},
		{6, "-p icmpv6 --icmpv6-type neighbour-advertisement", "icmpv6 type nd-neighbor-advert"},
	}
)

func (p Programs) match() match {
	if p.Cgroup == "" {
		uid := strconv.Itoa(p.UID)
		return match{ipt: "-m owner --uid-owner " + uid, nft: "meta skuid " + uid}
	}
	path := strings.Trim(p.Cgroup, "/")
	return match{ipt: `-m cgroup --path "/` + path + `"`, nft: fmt.Sprintf(`socket cgroupv2 level %d "%s"`, strings.Count(path, "/")+1, path)}
}

// plan is the rules of each chain.
type plan map[string][]rule

func (p plan) add(chain string, v verdict, why string, matches ...match) {
	p[chain] = append(p[chain], rule{matches, v, why})
}

// opened lets what is opened pass.
func (p plan) opened(chain string, from match, all []Opening) {
	for _, o := range all {
		for _, ports := range o.Ports {
			p.add(chain, pass, o.Why, from, to(o.To), port("tcp", ports))
			if o.UDP {
				p.add(chain, pass, o.Why, from, to(o.To), port("udp", ports))
			}
		}
	}
}

func (r *Rules) plan() plan {
	p := plan{}
	for _, b := range r.Bridges {
		p.bridge(b)
	}
	for _, x := range r.Programs {
		p.programs(x)
	}
	if len(r.Ports) > 0 {
		p.add(chainInput, pass, "answers", answer)
	}
	for _, x := range r.Ports {
		p.add(chainInput, drop, x.Why+": from loopback alone", beyond, port("tcp", firewall.PortRange{First: x.Number, Last: x.Number}))
	}
	if len(r.Bridges)+len(r.Programs) > 0 {
		p.ranges()
	}
	return p
}

// ranges fills the chains of closed ranges. One that nothing opens may lie inside one
// that a line opens, as a metadata service does, so they come first.
func (p plan) ranges() {
	for _, c := range firewall.ClassRanges() {
		chain := chainPrivate
		if !c.Class.Openable() {
			chain = chainNever
		}
		p.add(chain, refuse, c.Class.String(), to(c.Prefix))
	}
}

func (p plan) bridge(b Bridge) {
	from, of := in(b.Interface), "project "+b.Project+": "
	for _, m := range neighbours {
		p.add(chainInput, pass, of+"neighbours", from, m)
	}
	for _, chain := range []string{chainForward, chainInput} {
		for _, g := range []struct {
			guard netip.Addr
			only  match
		}{{b.Guard4, only4}, {b.Guard6, only6}} {
			if g.guard.IsValid() {
				g.only = notFrom(g.guard)
			}
			p.add(chain, refuse, of+"only its guard leaves", from, g.only)
		}
		p.add(chain, pass, of+"answers", from, answer)
		p.opened(chain, from, b.Upstreams)
		p.add(chain, never, of+"never", from)
		lines := b.Lines
		if chain == chainInput {
			lines = slices.DeleteFunc(slices.Clone(lines), func(o Opening) bool { return o.Named })
		}
		p.opened(chain, from, lines)
	}
	p.add(chainForward, private, of+"private ranges", from)
	p.add(chainForward, pass, of+"public addresses", from, tcp)
	p.add(chainForward, refuse, of+"TCP alone", from)
	p.add(chainInput, refuse, of+"not this machine", from)

	p.add(chainForward, pass, of+"answers", out(b.Interface), answer)
	for _, x := range b.Beyond {
		for _, guard := range []netip.Addr{b.Guard4, b.Guard6} {
			if guard.IsValid() {
				p.add(chainForward, pass, x.Why, out(b.Interface), to(netip.PrefixFrom(guard, guard.BitLen())), port("tcp", firewall.PortRange{First: x.Number, Last: x.Number}))
			}
		}
	}
	p.add(chainForward, drop, of+"nothing comes in", out(b.Interface))
}

func (p plan) programs(x Programs) {
	from, of := x.match(), projects(x.Projects)+": "
	p.add(chainOutput, pass, of+"answers", from, answer)
	p.opened(chainOutput, from, x.Upstreams)
	p.add(chainOutput, never, of+"never", from)
	p.add(chainOutput, refuse, of+"not this machine", from, own)
	p.opened(chainOutput, from, x.Lines)
	p.add(chainOutput, private, of+"private ranges", from)
	p.add(chainOutput, pass, of+"public addresses", from, tcp)
	p.add(chainOutput, refuse, of+"TCP alone", from)
}

func projects(names []string) string {
	switch len(names) {
	case 1:
		return "project " + names[0]
	case 2, 3:
		return "projects " + strings.Join(names, ", ")
	}
	return strconv.Itoa(len(names)) + " projects"
}
