package firewall

import (
	"bytes"
	"fmt"
)

// Text returns the ruleset of a family in the form of iptables-restore(8): what
// iptables-save or ip6tables-save prints inside the room, without its comments
// and with counters at zero.
func (r Ruleset) Text(f Family) []byte {
	var b bytes.Buffer
	for _, t := range r.Tables(f) {
		fmt.Fprintf(&b, "*%s\n", t.Name)
		for _, c := range t.Chains {
			policy := c.Policy
			if policy == "" {
				policy = "-"
			}
			fmt.Fprintf(&b, ":%s %s [0:0]\n", c.Name, policy)
		}
		for _, c := range t.Chains {
			for _, rule := range c.Rules {
				fmt.Fprintf(&b, "-A %s%s\n", c.Name, rule.text(f))
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.Bytes()
}

// text returns the options of a rule in the order in which iptables-save
// prints them, each with a blank before.
func (r ChainRule) text(f Family) string {
	var b bytes.Buffer
	if r.Destination.IsValid() {
		fmt.Fprintf(&b, " -d %s", r.Destination)
	}
	if r.Protocol != 0 {
		fmt.Fprintf(&b, " -p %s", r.Protocol)
		if r.Ports != (PortRange{}) {
			fmt.Fprintf(&b, " -m %s --dport %d", r.Protocol, r.Ports.First)
			if r.Ports.Last != r.Ports.First {
				fmt.Fprintf(&b, ":%d", r.Ports.Last)
			}
		}
	}
	if r.NotDNAT {
		b.WriteString(" -m conntrack ! --ctstate DNAT")
	}
	switch t := r.Target; {
	case t.Verdict != "":
		fmt.Fprintf(&b, " -j %s", t.Verdict)
	case t.Jump != "":
		fmt.Fprintf(&b, " -j %s", t.Jump)
	case t.Redirect != 0:
		fmt.Fprintf(&b, " -j REDIRECT --to-ports %d", t.Redirect)
	case t.Log != nil:
		fmt.Fprintf(&b, " -j NFLOG --nflog-group %d --nflog-size %d --nflog-threshold %d", t.Log.Group, t.Log.Size, t.Log.Threshold)
	case t.Reject != 0:
		fmt.Fprintf(&b, " -j REJECT --reject-with %s", t.Reject.text(f))
	}
	return b.String()
}

func (r RejectWith) text(f Family) string {
	switch {
	case r == RejectReset:
		return "tcp-reset"
	case f == V6:
		return "icmp6-adm-prohibited"
	}
	return "icmp-admin-prohibited"
}

// String returns "tcp" or "udp".
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return fmt.Sprint(uint8(p))
}
