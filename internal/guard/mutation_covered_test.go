package guard

import (
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/threat"
)

// cover is why a mutant of the ruleset changes nothing by itself: another
// defence does the same. Without that one too, the probe sees it.
type cover struct {
	why string
	// second is the other defence, a line of the rules; or outside takes it
	// away: a script that gives the room what no room has (B20).
	second  without
	outside string
	// setup is a script for all four attempts.
	setup string
	// probe is made as uid 0 with an engine's capabilities; with cable what
	// counts is whether it leaves by x0.
	probe string
}

// Scripts that give a room what it doesn't have.
const (
	cable = `ip link add x0 type veth peer name x1; ip link set x0 arp off; ip link set x0 up; ip link set x1 up
		ip route add 198.51.100.99 dev x0; ip -6 route add 2001:db8:1::99 dev x0
		iptables -t mangle -A POSTROUTING -o x0 -p udp; ip6tables -t mangle -A POSTROUTING -o x0 -p udp
		echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding`
	address = `ip addr add 198.51.100.99/32 dev lo; ip addr add 2001:db8:1::99/128 dev lo nodad`
)

// covered returns what covers a mutant, or nil.
func covered(m without) *cover {
	there := either(m, "198.51.100.99", "[2001:db8:1::99]")
	frame := "frame " + there + ":5000 from=" + either(m, "198.51.100.98", "[2001:db8:1::98]") + ":9000 proto=udp"
	drop := func(chain string) without { return without{m.family, ":" + chain + " DROP", ":" + chain + " ACCEPT"} }
	last := func(chain string) without { return without{m.family, "-A " + chain + " -j WS_DENY\n", ""} }
	switch _, name, _ := strings.Cut(m.String(), " "); name {
	case ":INPUT ACCEPT [0:0], instead of :INPUT DROP [0:0]":
		return &cover{why: "WS_IN refuses at its end what it didn't accept", second: last("WS_IN"), setup: address, probe: frame + " hear=1 -> silent"}
	case "-A WS_IN -j WS_DENY":
		return &cover{why: "INPUT drops what no rule accepted", second: drop("INPUT"), setup: address, probe: frame + " hear=1 -> silent"}
	case "-A WS_IN -j ACCEPT, instead of -A WS_IN -d ::1/128 -j ACCEPT":
		return &cover{why: "a room has no other IPv6 address, and no broadcast", outside: address, probe: frame + " hear=1 -> silent"}
	case ":OUTPUT ACCEPT [0:0], instead of :OUTPUT DROP [0:0]":
		return &cover{why: "WS_OUT refuses at its end what it didn't accept", second: last("WS_OUT"), probe: "udp " + there + ":5000 limit=200ms -> EPERM"}
	case ":FORWARD ACCEPT [0:0], instead of :FORWARD DROP [0:0]":
		return &cover{why: "there is no other interface, and ip_forward is off", outside: cable, probe: frame}
	}
	return nil
}

func either(m without, v4, v6 string) string {
	if m.family == firewall.V6 {
		return v6
	}
	return v4
}

// check takes out the mutant, the other defence, and both, of a namespace with
// the rules of a room: only the last is seen.
func (c *cover) check(w *world, m without) {
	w.Helper()
	for _, x := range []struct{ first, second bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		ns, err := testnet.NewNS()
		if err != nil {
			w.Fatal(err)
		}
		defer ns.Close()
		script := "ip route add default dev lo src 127.0.0.1; ip -6 route add default dev lo src ::1; " + c.setup
		var weak []without
		if x.first {
			weak = append(weak, m)
		}
		switch {
		case x.second && c.outside != "":
			script += "\n" + c.outside
		case x.second:
			weak = append(weak, c.second)
		}
		run(w, ns, "", "sh", "-ec", script)
		load(w, ns, weak...)
		seen := !w.intrude(ns, threat.Default, []string{c.probe})[0].OK
		if x.second && c.outside == cable {
			left := run(w, ns, "", either(m, "iptables-save", "ip6tables-save"), "-c", "-t", "mangle")
			seen = !strings.Contains(left, "[0:0] -A POSTROUTING -o x0")
		}
		if want := x.first && x.second; seen != want {
			w.Errorf("%s: mutant %v, the other defence out %v: noticed %v", m, x.first, x.second, seen)
		}
	}
}
