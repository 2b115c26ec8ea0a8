package room

import (
	"errors"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// families are the address families of a room.
type families []firewall.Family

func nfproto(f firewall.Family) byte {
	if f == firewall.V6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// loadRules writes the ruleset of all families in one nf_tables transaction.
func loadRules(rules firewall.Ruleset, fs families) error {
	t := newTransaction()
	for _, f := range fs {
		for _, table := range rules.Tables(f) {
			t.table(f, table.Name)
			for _, c := range table.Chains {
				if c.Policy == "" {
					t.chain(f, table.Name, c.Name, 0, nil)
				} else {
					h := hooks[table.Name][c.Name]
					t.chain(f, table.Name, c.Name, policyCode(c.Policy), &h)
				}
			}
			// Rules may jump to any chain of the table.
			for _, c := range table.Chains {
				t.rules(f, table.Name, c.Name, c.Rules)
			}
		}
	}
	err := t.commit()
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("rules: %w (the namespace already has iptables rules; a room needs a new one)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("rules: %w (a room needs of the kernel: nf_tables, nft_compat, nft_chain_nat, xt_conntrack, xt_NFLOG, xt_REDIRECT, ipt_REJECT and ip6t_REJECT)", err)
	case err != nil:
		return fmt.Errorf("rules: %w", err)
	}
	return nil
}

// replaceNAT replaces the rules of the redirecting chain in one transaction: no packet
// sees it empty.
func replaceNAT(o firewall.RulesetOptions, fs families) error {
	t := newTransaction()
	for _, f := range fs {
		t.flush(f, "nat", firewall.ChainNAT)
		t.rules(f, "nat", firewall.ChainNAT, firewall.NATRules(f, o))
	}
	if err := t.commit(); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	return nil
}

// appendNAT adds the rules of ports to a chain that has none yet, and no final rule for
// all ports. It is faster than replacing, which takes 12 ms because the kernel waits
// until no packet uses the old rules.
func appendNAT(o firewall.RulesetOptions, fs families) error {
	t := newTransaction()
	for _, f := range fs {
		all := firewall.NATRules(f, o)
		t.rules(f, "nat", firewall.ChainNAT, all[len(all)-len(o.Ports):])
	}
	if err := t.commit(); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	return nil
}

// hook is where a built-in chain is attached (linux/netfilter_ipv4.h).
type hook struct {
	number   uint32
	priority int32
}

var hooks = map[string]map[string]hook{
	"filter": {"INPUT": {unix.NF_INET_LOCAL_IN, 0}, "FORWARD": {unix.NF_INET_FORWARD, 0}, "OUTPUT": {unix.NF_INET_LOCAL_OUT, 0}},
	"nat": {
		"PREROUTING": {unix.NF_INET_PRE_ROUTING, -100}, "INPUT": {unix.NF_INET_LOCAL_IN, 100},
		"OUTPUT": {unix.NF_INET_LOCAL_OUT, -100}, "POSTROUTING": {unix.NF_INET_POST_ROUTING, 100},
	},
}

// policyCode is NF_ACCEPT or NF_DROP (linux/netfilter.h).
func policyCode(v firewall.Verdict) uint32 {
	if v == firewall.Accept {
		return 1
	}
	return 0
}

func (t *transaction) rules(f firewall.Family, table, chain string, rules []firewall.ChainRule) {
	for i, r := range rules {
		t.rule(f, fmt.Sprintf("IPv%d %s rule %d", f, chain, i+1), table, chain, r.Protocol, expressions(f, r))
	}
}

// expressions returns the expressions of a rule in the order of iptables-nft.
func expressions(f firewall.Family, r firewall.ChainRule) []expr.Any {
	var x []expr.Any
	if r.Destination.IsValid() {
		// The prefix's bytes of the address; our prefixes are whole bytes.
		offset := uint32(16) // of the destination in the IPv4 header
		if f == firewall.V6 {
			offset = 24
		}
		n := r.Destination.Bits() / 8
		x = append(x,
			&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(n)},
			&expr.Cmp{Register: unix.NFT_REG_1, Data: r.Destination.Addr().AsSlice()[:n]})
	}
	if r.Protocol != 0 {
		x = append(x,
			&expr.Meta{Register: unix.NFT_REG_1, Key: expr.MetaKeyL4PROTO},
			&expr.Cmp{Register: unix.NFT_REG_1, Data: []byte{byte(r.Protocol)}})
		if r.Ports.Valid() {
			x = append(x, &expr.Match{Name: r.Protocol.String(), Info: xtPorts(r.Protocol, r.Ports)})
		}
	}
	if r.NotDNAT {
		x = append(x, &expr.Match{Name: "conntrack", Rev: 3, Info: xtNotDNAT()})
	}
	x = append(x, &expr.Counter{})
	switch y := r.Target; {
	case y.Verdict == firewall.Accept:
		x = append(x, &expr.Verdict{Kind: expr.VerdictAccept})
	case y.Verdict == firewall.Return:
		x = append(x, &expr.Verdict{Kind: expr.VerdictReturn})
	case y.Verdict == firewall.Drop:
		x = append(x, &expr.Verdict{Kind: expr.VerdictDrop})
	case y.Jump != "":
		x = append(x, &expr.Verdict{Kind: expr.VerdictJump, Chain: y.Jump})
	case y.Redirect != 0:
		x = append(x, &expr.Target{Name: "REDIRECT", Info: xtRedirect(f, y.Redirect)})
	case y.Log != nil:
		x = append(x, &expr.Target{Name: "NFLOG", Info: xtNFLog(y.Log)})
	case y.Reject != 0:
		x = append(x, &expr.Target{Name: "REJECT", Info: xtReject(f, y.Reject)})
	}
	return x
}
