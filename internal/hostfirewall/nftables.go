package hostfirewall

import (
	"fmt"
	"strings"
)

// nftables returns a file for nft -f: a table of its own, replaced in one transaction.
func nftables(r *Rules) string {
	table := fmt.Sprintf("table inet workshop_%d", r.UID)
	var b strings.Builder
	b.WriteString("#!/usr/sbin/nft -f\n")
	b.WriteString(r.header(about, "workshop firewall export --for nftables | sudo nft -f -", again))
	// Created first, so that it can be deleted whether it was there or not.
	fmt.Fprintf(&b, "%s\ndelete %s\n%s {\n", table, table, table)
	p := r.plan()
	for _, chain := range []string{chainNever, chainPrivate, chainForward, chainInput, chainOutput} {
		if len(p[chain]) == 0 {
			continue
		}
		hook := strings.ToLower(chain)
		fmt.Fprintf(&b, "\tchain %s {\n", hook)
		if chain != chainNever && chain != chainPrivate {
			fmt.Fprintf(&b, "\t\ttype filter hook %s priority -10; policy accept;\n", hook)
		}
		for _, x := range p[chain] {
			if _, ok := x.of(); ok {
				fmt.Fprintf(&b, "\t\t%s\n", x.nft())
			}
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// removeNFTables returns a file for nft -f that removes them, if they are there.
func removeNFTables(uid int) string {
	table := fmt.Sprintf("table inet workshop_%d", uid)
	return fmt.Sprintf("#!/usr/sbin/nft -f\n%s%s\ndelete %s\n", removal("workshop firewall export --for nftables --remove | sudo nft -f -"), table, table)
}

func (r rule) nft() string {
	var words []string
	for _, m := range r.matches {
		words = append(words, m.nft)
	}
	// In a table of its own accept ends that table alone.
	words = append(words, "counter", map[verdict]string{
		pass: "accept", drop: "drop", refuse: "reject with icmpx type admin-prohibited", never: "jump never", private: "jump private",
	}[r.verdict])
	return strings.Join(words, " ") + ` comment "` + comment(r.why) + `"`
}
