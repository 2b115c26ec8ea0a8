package hostfirewall

import (
	_ "embed"
	"strings"
)

var (
	//go:embed iptables.sh
	iptablesScript string
	//go:embed apply.sh
	applyScript string
	//go:embed remove.sh
	removeScript string
)

// iptables returns a script for a shell of root: iptables-restore and ip6tables-restore
// get one transaction each. A script, since whether a jump is there, and whether Docker
// has a chain for it, is known on the machine alone.
func iptables(r *Rules) string {
	p := r.plan()
	var used []string
	for _, chain := range chains {
		if len(p[chain]) > 0 {
			used = append(used, chain)
		}
	}
	return "#!/bin/sh\n" +
		r.header(about, "workshop firewall export --for iptables | sudo sh", again) +
		script(r.UID, used, p.iptables(r.UID, 4), p.iptables(r.UID, 6)) + applyScript
}

// removeIPTables returns a script that removes them, if they are there.
func removeIPTables(uid int) string {
	return "#!/bin/sh\n" + removal("workshop firewall export --for iptables --remove | sudo sh") +
		script(uid, nil, "", "") + removeScript
}

func script(uid int, used []string, rules4, rules6 string) string {
	named := func(list []string) string {
		var out []string
		for _, chain := range list {
			out = append(out, name(uid, chain))
		}
		return strings.Join(out, " ")
	}
	return strings.NewReplacer(
		// A chain is removed after those that jump to it.
		"@CHAINS@", named(chains), "@USED@", named(used), "@PREFIX@", name(uid, ""), "@RULES4@", rules4, "@RULES6@", rules6,
	).Replace(iptablesScript)
}

// iptables returns the rules of one family.
func (p plan) iptables(uid int, f family) string {
	var b strings.Builder
	for _, chain := range chains {
		for _, r := range p[chain] {
			if of, ok := r.of(); ok && (of == 0 || of == f) {
				b.WriteString("-A " + name(uid, chain) + r.iptables(uid, f) + "\n")
			}
		}
	}
	return b.String()
}

func (r rule) iptables(uid int, f family) string {
	s := ""
	for _, m := range r.matches {
		if m.ipt != "" {
			s += " " + m.ipt
		}
	}
	with := "icmp-admin-prohibited"
	if f == 6 {
		with = "icmp6-adm-prohibited"
	}
	return s + ` -m comment --comment "` + comment(r.why) + `" -j ` + map[verdict]string{
		pass: "RETURN", drop: "DROP", refuse: "REJECT --reject-with " + with,
		never: name(uid, chainNever), private: name(uid, chainPrivate),
	}[r.verdict]
}
