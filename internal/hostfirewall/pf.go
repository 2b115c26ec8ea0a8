package hostfirewall

import (
	"fmt"
	"strings"
)

const pfCommand = "| sudo pfctl -a com.apple/workshop -f -"

// pf returns rules of an anchor for pfctl. An engine on such a machine is in a virtual one,
// whose programs pf can't tell apart: only ports are held.
func pf(r *Rules) string {
	ports := &Rules{Ports: r.Ports, NotHeld: r.NotHeld}
	var b strings.Builder
	b.WriteString(ports.header(about, "workshop firewall export --for pf "+pfCommand,
		"UNTRIED: no machine with pf has loaded these rules.",
		"macOS has the anchor com.apple/*; elsewhere pf.conf needs one, and pf has to be enabled: pfctl -e.",
		again,
		"- not held: what guards connect to. The engine is in a virtual machine, and pf sees its connections as one program's."))
	for _, p := range r.Ports {
		fmt.Fprintf(&b, "block drop in quick on ! lo0 proto tcp from any to any port %d # %s\n", p.Number, comment(p.Why))
	}
	return b.String()
}

// removePF returns an anchor without rules.
func removePF() string {
	return removal("workshop firewall export --for pf --remove " + pfCommand)
}
