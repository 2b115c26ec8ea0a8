package room

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

var errNoCounter = errors.New("counters: the rules are gone")

// denied returns the kernel's count of packets in the refusing chain: the counter of
// its first rule (linux/netfilter/nf_tables.h).
func denied(f firewall.Family) (uint64, error) {
	c, err := dialNetlink(unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, fmt.Errorf("counters: %w", err)
	}
	defer c.Close()
	m, err := request(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, netfilterHeader(nfproto(f), 0), binary.BigEndian,
		func(e *netlink.AttributeEncoder) {
			e.String(unix.NFTA_RULE_TABLE, "filter")
			e.String(unix.NFTA_RULE_CHAIN, firewall.ChainDeny)
		})
	if err != nil {
		return 0, fmt.Errorf("counters: %w", err)
	}
	rules, err := c.Execute(m)
	if err != nil {
		return 0, fmt.Errorf("counters: %w", refusal(err))
	}
	const header = 4 // struct nfgenmsg
	if len(rules) == 0 || len(rules[0].Data) < header {
		return 0, errNoCounter
	}
	return counter(rules[0].Data[header:])
}

// counter finds the packets of the counter among the expressions of a rule.
func counter(rule []byte) (packets uint64, err error) {
	d, err := netlink.NewAttributeDecoder(rule)
	if err != nil {
		return 0, fmt.Errorf("counters: %w", err)
	}
	d.ByteOrder = binary.BigEndian
	found, name := false, ""
	values := each(func(d *netlink.AttributeDecoder) {
		if name == "counter" && d.Type() == unix.NFTA_COUNTER_PACKETS {
			packets, found = d.Uint64(), true
		}
	})
	expression := each(func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case unix.NFTA_EXPR_NAME: // which the kernel writes before the data
			name = d.String()
		case unix.NFTA_EXPR_DATA:
			d.Nested(values)
		}
	})
	list := each(func(d *netlink.AttributeDecoder) { d.Nested(expression) })
	_ = each(func(d *netlink.AttributeDecoder) {
		if d.Type() == unix.NFTA_RULE_EXPRESSIONS {
			d.Nested(list)
		}
	})(d)
	switch {
	case d.Err() != nil:
		return 0, fmt.Errorf("counters: %w", d.Err())
	case !found:
		return 0, errNoCounter
	}
	return packets, nil
}

// each calls f with every attribute.
func each(f func(*netlink.AttributeDecoder)) func(*netlink.AttributeDecoder) error {
	return func(d *netlink.AttributeDecoder) error {
		for d.Next() {
			f(d)
		}
		return nil
	}
}
