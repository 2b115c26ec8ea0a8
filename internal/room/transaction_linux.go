package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// transaction is a batch of the nf_tables subsystem (nfnetlink(7),
// include/uapi/linux/netfilter/nf_tables.h): everything or nothing.
//
// The Conn of google/nftables can't do it: it tells the kernel no -p for the
// target REJECT, which therefore refuses tcp-reset; it asks for two answers to
// each message, which don't fit into the socket's buffer for long lists of
// ports; and its errors don't tell which message was refused.
type transaction struct {
	messages []netlink.Message
	what     []string // each message is about
	err      error    // the first, of encoding
	// extensions of xtables that the rules use, each once
	extensions []kernelsupport.Extension
}

func newTransaction() *transaction {
	t := &transaction{}
	t.add("begin", unix.NFNL_MSG_BATCH_BEGIN, 0, netfilterHeader(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES), nil)
	return t
}

// add appends a message. Sequence numbers count from 1.
func (t *transaction) add(what string, typ, flags uint16, header unix.Nfgenmsg, attributes func(*netlink.AttributeEncoder)) {
	m, err := request(typ, flags, header, binary.BigEndian, attributes)
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("%s: %w", what, err)
	}
	m.Header.Sequence = uint32(len(t.messages) + 1)
	t.messages, t.what = append(t.messages, m), append(t.what, what)
}

func (t *transaction) message(f firewall.Family, what string, typ, flags uint16, attributes func(*netlink.AttributeEncoder)) {
	t.add(what, unix.NFNL_SUBSYS_NFTABLES<<8|typ, flags, netfilterHeader(nfproto(f), 0), attributes)
}

// commit carries out the transaction. The kernel confirms its last message; if
// it refuses one, the error says what that is about.
func (t *transaction) commit() error {
	t.messages[len(t.messages)-1].Header.Flags |= netlink.Acknowledge
	t.add("end", unix.NFNL_MSG_BATCH_END, 0, netfilterHeader(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES), nil)
	if t.err != nil {
		return t.err
	}
	c, err := dialNetlink(unix.NETLINK_NETFILTER)
	if err != nil {
		return t.refused(err, 0)
	}
	defer c.Close()
	if _, err := c.SendMessages(t.messages); err != nil {
		return err
	}
	_, err = c.Receive()
	var op *netlink.OpError
	if errors.As(err, &op) && op.Sequence > 0 && int(op.Sequence) <= len(t.what) {
		return t.refused(op.Err, int(op.Sequence))
	}
	return err
}

// refused says what the kernel refused; at is the message, counted from 1.
func (t *transaction) refused(err error, at int) error {
	if at > 0 {
		err = fmt.Errorf("%s: %w", t.what[at-1], err)
	}
	if missing := t.lacking(err, at); missing != nil {
		return fmt.Errorf("%w (%w)", missing, err)
	}
	return err
}

func (t *transaction) table(f firewall.Family, name string) {
	t.message(f, "table "+name, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, func(e *netlink.AttributeEncoder) {
		e.String(unix.NFTA_TABLE_NAME, name)
		e.Uint32(unix.NFTA_TABLE_FLAGS, 0)
	})
}

// chain appends a chain; hook is nil for one of ours.
func (t *transaction) chain(f firewall.Family, table, name string, policy uint32, hook *hook) {
	t.message(f, "chain "+name, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE|unix.NLM_F_EXCL, func(e *netlink.AttributeEncoder) {
		e.String(unix.NFTA_CHAIN_TABLE, table)
		e.String(unix.NFTA_CHAIN_NAME, name)
		if hook == nil {
			return
		}
		e.Nested(unix.NFTA_CHAIN_HOOK, func(e *netlink.AttributeEncoder) error {
			e.Uint32(unix.NFTA_HOOK_HOOKNUM, hook.number)
			e.Int32(unix.NFTA_HOOK_PRIORITY, hook.priority)
			return nil
		})
		e.Uint32(unix.NFTA_CHAIN_POLICY, policy)
		e.String(unix.NFTA_CHAIN_TYPE, table)
	})
}

// flush removes the rules of a chain.
func (t *transaction) flush(f firewall.Family, table, chain string) {
	t.message(f, "flush "+chain, unix.NFT_MSG_DELRULE, 0, func(e *netlink.AttributeEncoder) {
		e.String(unix.NFTA_RULE_TABLE, table)
		e.String(unix.NFTA_RULE_CHAIN, chain)
	})
}

// rule appends a rule to a chain. The protocol is what extensions of xtables
// are told of -p; 0 means that there is none.
func (t *transaction) rule(f firewall.Family, what, table, chain string, protocol firewall.Protocol, exprs []expr.Any) {
	for _, x := range extensionsOf(f, exprs) {
		if !slices.Contains(t.extensions, x) {
			t.extensions = append(t.extensions, x)
		}
	}
	t.message(f, what, unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, func(e *netlink.AttributeEncoder) {
		e.String(unix.NFTA_RULE_TABLE, table)
		e.String(unix.NFTA_RULE_CHAIN, chain)
		e.Nested(unix.NFTA_RULE_EXPRESSIONS, func(e *netlink.AttributeEncoder) error {
			for _, x := range exprs {
				e.Do(unix.NLA_F_NESTED|unix.NFTA_LIST_ELEM, func() ([]byte, error) { return expr.Marshal(nfproto(f), x) })
			}
			return nil
		})
		if protocol != 0 {
			e.Nested(unix.NFTA_RULE_COMPAT, func(e *netlink.AttributeEncoder) error {
				e.Uint32(unix.NFTA_RULE_COMPAT_PROTO, uint32(protocol))
				e.Uint32(unix.NFTA_RULE_COMPAT_FLAGS, 0)
				return nil
			})
		}
	})
}
