package room

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// families are those that the room has.
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
				t.chain(f, table.Name, c)
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
		return fmt.Errorf("rules: %w (the namespace has iptables rules already; a room needs a fresh one)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("rules: %w (the kernel lacks a module: nf_tables, nft_compat, nf_nat, xt_conntrack, xt_NFLOG, xt_REDIRECT, ipt_REJECT and ip6t_REJECT are needed)", err)
	case err != nil:
		return fmt.Errorf("rules: %w", err)
	}
	return nil
}

// replaceNAT replaces the rules of the chain that redirects, in one
// transaction: no packet sees it empty.
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

// transaction is a batch of the nf_tables subsystem (nfnetlink(7),
// include/uapi/linux/netfilter/nf_tables.h): everything or nothing.
type transaction struct{ batch }

func newTransaction() *transaction {
	t := &transaction{}
	t.buf = make([]byte, 0, 32<<10)
	t.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, "begin")
	t.raw(unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES)
	return t
}

func (t *transaction) message(f firewall.Family, typ, flags uint16, what string) {
	t.begin(unix.NFNL_SUBSYS_NFTABLES<<8|typ, flags, what)
	t.raw(nfproto(f), unix.NFNETLINK_V0, 0, 0)
}

func (t *transaction) commit() error {
	t.acknowledge()
	last := t.seq
	t.begin(unix.NFNL_MSG_BATCH_END, 0, "end")
	t.raw(unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES)
	t.end()
	t.seq = last // whose confirmation ends the exchange
	fd, err := netlinkSocket(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.send(fd, nil)
}

func (t *transaction) table(f firewall.Family, name string) {
	t.message(f, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "table "+name)
	t.text(unix.NFTA_TABLE_NAME, name)
	t.be32(unix.NFTA_TABLE_FLAGS, 0)
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

func (t *transaction) chain(f firewall.Family, table string, c firewall.Chain) {
	t.message(f, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "chain "+c.Name)
	t.text(unix.NFTA_CHAIN_TABLE, table)
	t.text(unix.NFTA_CHAIN_NAME, c.Name)
	if c.Policy == "" {
		return
	}
	h := hooks[table][c.Name]
	t.nest(unix.NFTA_CHAIN_HOOK, func() {
		t.be32(unix.NFTA_HOOK_HOOKNUM, h.number)
		t.be32(unix.NFTA_HOOK_PRIORITY, uint32(h.priority))
	})
	t.be32(unix.NFTA_CHAIN_POLICY, uint32(verdictCode(c.Policy)))
	t.text(unix.NFTA_CHAIN_TYPE, table)
}

func (t *transaction) flush(f firewall.Family, table, chain string) {
	t.message(f, unix.NFT_MSG_DELRULE, 0, "flush "+chain)
	t.text(unix.NFTA_RULE_TABLE, table)
	t.text(unix.NFTA_RULE_CHAIN, chain)
}

func (t *transaction) rules(f firewall.Family, table, chain string, rules []firewall.ChainRule) {
	for i, r := range rules {
		t.message(f, unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, fmt.Sprintf("IPv%d %s rule %d", f, chain, i+1))
		t.text(unix.NFTA_RULE_TABLE, table)
		t.text(unix.NFTA_RULE_CHAIN, chain)
		t.nest(unix.NFTA_RULE_EXPRESSIONS, func() { t.rule(f, r) })
		if r.Protocol != 0 {
			// What xtables extensions are told of -p.
			t.nest(unix.NFTA_RULE_COMPAT, func() {
				t.be32(unix.NFTA_RULE_COMPAT_PROTO, uint32(r.Protocol))
				t.be32(unix.NFTA_RULE_COMPAT_FLAGS, 0)
			})
		}
	}
}

// rule writes the expressions of a rule in the order of iptables-nft.
func (t *transaction) rule(f firewall.Family, r firewall.ChainRule) {
	if r.Destination.IsValid() {
		t.destination(f, r)
	}
	if r.Protocol != 0 {
		t.expr("meta", func() {
			t.be32(unix.NFTA_META_DREG, unix.NFT_REG_1)
			t.be32(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO)
		})
		t.equal([]byte{byte(r.Protocol)})
		if r.Ports.Valid() {
			t.extension("match", r.Protocol.String(), 0, xtPorts(r.Ports))
		}
	}
	if r.NotDNAT {
		t.extension("match", "conntrack", 3, xtNotDNAT())
	}
	t.expr("counter", func() {
		t.attr(unix.NFTA_COUNTER_BYTES, make([]byte, 8))
		t.attr(unix.NFTA_COUNTER_PACKETS, make([]byte, 8))
	})
	switch x := r.Target; {
	case x.Verdict != "":
		t.verdict(verdictCode(x.Verdict), "")
	case x.Jump != "":
		t.verdict(unix.NFT_JUMP, x.Jump)
	case x.Redirect != 0:
		t.extension("target", "REDIRECT", 0, xtRedirect(f, x.Redirect))
	case x.Log != nil:
		t.extension("target", "NFLOG", 0, xtNFLog(x.Log))
	case x.Reject != 0:
		t.extension("target", "REJECT", 0, xtReject(f, x.Reject))
	}
}

// destination compares as many bytes of the address as the prefix has; our
// prefixes are whole bytes.
func (t *transaction) destination(f firewall.Family, r firewall.ChainRule) {
	offset := uint32(16) // of the destination in the IPv4 header
	if f == firewall.V6 {
		offset = 24
	}
	n := r.Destination.Bits() / 8
	t.expr("payload", func() {
		t.be32(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1)
		t.be32(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER)
		t.be32(unix.NFTA_PAYLOAD_OFFSET, offset)
		t.be32(unix.NFTA_PAYLOAD_LEN, uint32(n))
	})
	t.equal(r.Destination.Addr().AsSlice()[:n])
}

func (t *transaction) equal(value []byte) {
	t.expr("cmp", func() {
		t.be32(unix.NFTA_CMP_SREG, unix.NFT_REG_1)
		t.be32(unix.NFTA_CMP_OP, unix.NFT_CMP_EQ)
		t.nest(unix.NFTA_CMP_DATA, func() { t.attr(unix.NFTA_DATA_VALUE, value) })
	})
}

func (t *transaction) verdict(code int32, chain string) {
	t.expr("immediate", func() {
		t.be32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		t.nest(unix.NFTA_IMMEDIATE_DATA, func() {
			t.nest(unix.NFTA_DATA_VERDICT, func() {
				t.be32(unix.NFTA_VERDICT_CODE, uint32(code))
				if chain != "" {
					t.text(unix.NFTA_VERDICT_CHAIN, chain)
				}
			})
		})
	})
}

// extension writes an xtables match or target; their attributes have the same
// numbers (NFTA_MATCH_NAME is NFTA_TARGET_NAME and so on).
func (t *transaction) extension(kind, name string, revision uint32, info []byte) {
	t.expr(kind, func() {
		t.text(unix.NFTA_MATCH_NAME, name)
		t.be32(unix.NFTA_MATCH_REV, revision)
		t.attr(unix.NFTA_MATCH_INFO, info)
	})
}

func (t *transaction) expr(name string, data func()) {
	t.nest(unix.NFTA_LIST_ELEM, func() {
		t.text(unix.NFTA_EXPR_NAME, name)
		t.nest(unix.NFTA_EXPR_DATA, data)
	})
}

func verdictCode(v firewall.Verdict) int32 {
	switch v {
	case firewall.Accept:
		return 1 // NF_ACCEPT
	case firewall.Return:
		return unix.NFT_RETURN
	}
	return 0 // NF_DROP
}

// denied returns the kernel's count of packets that went through the chain
// that refuses: the counter of its first rule.
func denied(f firewall.Family) (uint64, error) {
	fd, err := netlinkSocket(unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	t := &transaction{}
	t.message(f, unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, "counters")
	t.text(unix.NFTA_RULE_TABLE, "filter")
	t.text(unix.NFTA_RULE_CHAIN, firewall.ChainDeny)
	var packets uint64
	found := false
	err = t.send(fd, func(typ uint16, body []byte) error {
		if typ != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWRULE || len(body) < 4 || found {
			return nil
		}
		packets, found = ruleCounter(body[4:])
		return nil
	})
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, errors.New("counters: the rules are gone")
	}
	return packets, nil
}

// ruleCounter returns the packets of the first counter of a rule.
func ruleCounter(rule []byte) (packets uint64, found bool) {
	attributes(rule, func(typ uint16, list []byte) bool {
		if typ != unix.NFTA_RULE_EXPRESSIONS {
			return true
		}
		attributes(list, func(_ uint16, elem []byte) bool {
			counter := false
			attributes(elem, func(typ uint16, v []byte) bool {
				switch {
				case typ == unix.NFTA_EXPR_NAME:
					counter = string(v) == "counter\x00"
				case typ == unix.NFTA_EXPR_DATA && counter:
					attributes(v, func(typ uint16, v []byte) bool {
						if typ == unix.NFTA_COUNTER_PACKETS && len(v) == 8 {
							packets, found = binary.BigEndian.Uint64(v), true
						}
						return !found
					})
				}
				return !found
			})
			return !found
		})
		return false
	})
	return packets, found
}
