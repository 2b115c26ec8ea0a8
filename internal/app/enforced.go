package app

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/workshop"
)

// allowCommand is what does in the running guard what a suggested line does in
// the file; port 0 is none, and no worker is all.
func allowCommand(host string, port uint16, suggest, worker string) string {
	flags := ""
	switch {
	case strings.HasPrefix(suggest, "{cidr:"):
	case strings.Contains(suggest, "ech:"):
		flags = " --ech"
	case strings.HasPrefix(suggest, "{"):
		flags = " --private"
	}
	_, notAddress := netip.ParseAddr(host)
	if port != 0 && (port != 80 && port != 443 || flags != "" || notAddress == nil) {
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	if worker != "" {
		flags += " --worker " + worker
	}
	return "workshop firewall allow " + shellquote.Quote(host) + flags
}

// roomFlag is the worker that a command names for its room: none where all workers with
// a network share that one, as a rule for one of them would be for all.
func roomFlag(room string, workers []string, worker string) string {
	if room == workshop.OnlyRoom && len(workers) > 1 {
		return ""
	}
	return worker
}

// enforced says in order what a connection meets on its way out of a room. own: the worker's
// kernel is its own, and hands connections on.
func enforced(r *firewall.RoomPolicy, x endpoint, port uint16, d firewall.Decision, own bool) []string {
	if r == nil {
		return []string{"room: none: the worker has a network namespace of its own with loopback only: there is no interface, no route and no guard (B20)"}
	}
	var out []string
	if !x.addr.IsValid() {
		out = append(out, lookUp(r, x.name))
	}
	if x.own() && port != 53 && own {
		return append(out, "kernel: a loopback address is the worker's own: what listens in the worker is reached directly, and nothing leaves it (B20)")
	}
	if x.own() && port != 53 {
		return append(out, "room: a loopback address is the room's own: what listens in the room is reached directly, and nothing leaves it (B20)")
	}
	if port == 53 {
		return append(out, fmt.Sprintf("room: port 53 goes to the guard's DNS (port %d), whichever server is meant; no line opens another (B23)", firewall.PortDNS))
	}
	to := redirectOf(*r, port)
	switch {
	case own && to == 0 && !slices.Contains(firewall.ToldPorts, port):
		return append(out, fmt.Sprintf("kernel: it is the worker's own, and refuses tcp port %d at once: no line has this port (B25); the guard isn't told (B28)", port))
	case own:
		out = append(out, "kernel: it is the worker's own, and hands the connection to the outlet, which makes it in the room (B13)")
	}
	if to == 0 {
		return append(out, fmt.Sprintf("room: its rules refuse tcp port %d at once (filter, REJECT with tcp-reset): no line has this port (B25)", port))
	}
	out = append(out, fmt.Sprintf("room: its rules lead tcp port %d to the guard's port %d (nat, REDIRECT), whichever address is dialled; there is no interface but loopback (B20)", port, to))
	how := ""
	switch {
	case r.Mode == firewall.Open:
		how = "goes where the worker dialled (mode open); names serve deny lines and events only"
	case to == firewall.PortTCP && !x.addr.IsValid():
		how = "uses the address that was dialled, which must be one that the guard answered for a name with this port (B25)"
	case x.addr.IsValid() && !firewall.Classify(x.addr).Openable():
		how = "uses the address that was dialled, which stays closed whatever a line says (B26)"
	case x.addr.IsValid():
		how = "uses the address that was dialled: a line with a cidr must have it (B24, B25)"
	case to == firewall.PortTLS:
		how = "uses the server name (SNI) of the TLS hello, looks it up itself and dials its own answer; the address that was dialled doesn't count (B24)"
	default:
		how = "uses the Host of each request, looks it up itself and dials its own answer; the address that was dialled doesn't count (B24)"
	}
	out = append(out, "guard: "+how)
	if d.Allowed {
		out = append(out, "guard: the address itself is checked before it connects: metadata, loopback, link-local and the guard's own stay closed, private ones and the host unless a line opens them (B26)")
	}
	return out
}

// lookUp says what a question for a name meets.
func lookUp(r *firewall.RoomPolicy, n firewall.Name) string {
	answer := "answers NXDOMAIN, and asks nobody"
	switch {
	case firewall.IsOwn(n):
		answer = "answers with loopback addresses, and asks nobody"
	case r.Compile().Resolvable(n).Allowed:
		answer = "looks it up itself and answers"
	}
	return fmt.Sprintf("look-up: goes to the guard's DNS (port 53, REDIRECT to %d), whichever server is asked, which %s (B23)", firewall.PortDNS, answer)
}

// redirectOf is where the rules of a room lead a connection to a foreign
// address; 0: they refuse it.
func redirectOf(r firewall.RoomPolicy, port uint16) uint16 {
	o := firewall.RulesetOptions{Ports: firewall.RoomPorts(r), Open: r.Mode == firewall.Open}
	for _, rule := range firewall.NATRules(firewall.V4, o) {
		if rule.Protocol == firewall.TCP && rule.Target.Redirect != 0 && (rule.Ports == firewall.PortRange{} || rule.Ports.Contains(port)) {
			return rule.Target.Redirect
		}
	}
	return 0
}
