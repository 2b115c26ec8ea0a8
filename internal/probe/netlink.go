//go:build linux

package probe

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The netlink messages of ip(8) and nft(8), encoded here because libraries for them are
// several times as large as all probes together.

// ask sends messages of which the kernel acknowledges one, and returns the answer.
func ask(family int, messages ...netlink.Message) (string, string) {
	c, err := netlink.Dial(family, nil)
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	if _, err := c.SendMessages(messages); err != nil {
		return seenOf(err)
	}
	_, err = c.Receive()
	return seenOf(err)
}

// message encodes a message with a header struct of the subsystem and attributes.
func message(typ, flags uint16, header []byte, attributes func(*netlink.AttributeEncoder)) netlink.Message {
	e := netlink.NewAttributeEncoder()
	if attributes != nil {
		attributes(e)
	}
	data, _ := e.Encode() // only fails if an encoding function does
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.HeaderFlags(flags)},
		Data:   append(header, data...),
	}
}

// change sends one message of rtnetlink(7).
func change(typ, flags uint16, header []byte, attributes func(*netlink.AttributeEncoder)) (string, string) {
	return ask(unix.NETLINK_ROUTE, message(typ, flags|unix.NLM_F_ACK, header, attributes))
}

const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL

func family(a netip.Addr) byte {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func route(a args) (string, string) {
	dev, err := net.InterfaceByName(a.opt("dev", "lo"))
	if err != nil {
		return seenOf(err)
	}
	to := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if a.pos[1] != "default" {
		if to, err = netip.ParsePrefix(a.pos[1]); err != nil {
			return "ERROR", err.Error()
		}
	}
	var gateway []byte
	scope := byte(unix.RT_SCOPE_LINK)
	if via := a.opt("via", ""); via != "" {
		g, err := netip.ParseAddr(via)
		if err != nil {
			return "ERROR", err.Error()
		}
		gateway, scope = g.AsSlice(), unix.RT_SCOPE_UNIVERSE
	}
	typ, flags := uint16(unix.RTM_NEWROUTE), uint16(create)
	if a.pos[0] == "del" {
		typ, flags, scope = unix.RTM_DELROUTE, 0, unix.RT_SCOPE_NOWHERE
	}
	header := []byte{family(to.Addr()), byte(to.Bits()), 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, scope, unix.RTN_UNICAST, 0, 0, 0, 0}
	if a.pos[0] == "del" {
		header[5] = 0 // of any origin
	}
	return change(typ, flags, header, func(e *netlink.AttributeEncoder) {
		if to.Bits() > 0 {
			e.Bytes(unix.RTA_DST, to.Masked().Addr().AsSlice())
		}
		if gateway != nil {
			e.Bytes(unix.RTA_GATEWAY, gateway)
		}
		e.Uint32(unix.RTA_OIF, uint32(dev.Index))
	})
}

// ifinfo is a struct ifinfomsg.
func ifinfo(index int, flags, mask uint32) []byte {
	b := make([]byte, 4, unix.SizeofIfInfomsg)
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	b = binary.NativeEndian.AppendUint32(b, flags)
	return binary.NativeEndian.AppendUint32(b, mask)
}

func link(a args) (string, string) {
	if a.pos[0] == "add" {
		return change(unix.RTM_NEWLINK, create, ifinfo(0, 0, 0), func(e *netlink.AttributeEncoder) {
			e.String(unix.IFLA_IFNAME, a.pos[1])
			e.Nested(unix.IFLA_LINKINFO, func(e *netlink.AttributeEncoder) error {
				e.String(unix.IFLA_INFO_KIND, "dummy")
				return nil
			})
		})
	}
	dev, err := net.InterfaceByName(a.pos[1])
	if err != nil {
		return seenOf(err)
	}
	switch a.pos[0] {
	case "del":
		return change(unix.RTM_DELLINK, 0, ifinfo(dev.Index, 0, 0), nil)
	case "down":
		return change(unix.RTM_NEWLINK, 0, ifinfo(dev.Index, 0, unix.IFF_UP), nil)
	default:
		return change(unix.RTM_NEWLINK, 0, ifinfo(dev.Index, unix.IFF_UP, unix.IFF_UP), nil)
	}
}

func address(a args) (string, string) {
	dev, err := net.InterfaceByName(a.opt("dev", "lo"))
	if err != nil {
		return seenOf(err)
	}
	p, err := netip.ParsePrefix(a.pos[1])
	if err != nil {
		return "ERROR", err.Error()
	}
	typ, flags := uint16(unix.RTM_NEWADDR), uint16(create)
	if a.pos[0] == "del" {
		typ, flags = unix.RTM_DELADDR, 0
	}
	header := binary.NativeEndian.AppendUint32([]byte{family(p.Addr()), byte(p.Bits()), 0, unix.RT_SCOPE_UNIVERSE}, uint32(dev.Index))
	return change(typ, flags, header, func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.IFA_LOCAL, p.Addr().AsSlice())
		e.Bytes(unix.IFA_ADDRESS, p.Addr().AsSlice())
	})
}

// rules changes netfilter in one transaction of nf_tables, as nft(8) and
// iptables-nft(8) do.
func rules(a args) (string, string) {
	nfgen := func(family, subsystem byte) []byte { return []byte{family, unix.NFNETLINK_V0, 0, subsystem} }
	typ, flags, family := uint16(unix.NFT_MSG_NEWTABLE), uint16(unix.NLM_F_CREATE), byte(unix.NFPROTO_INET)
	table := func(e *netlink.AttributeEncoder) { e.String(unix.NFTA_TABLE_NAME, "probe") }
	switch a.pos[0] {
	case "flush":
		typ, flags, family, table = unix.NFT_MSG_DELTABLE, 0, unix.NFPROTO_UNSPEC, nil // every table
	case "del": // has no effect where there is none
		typ, flags = unix.NFT_MSG_DELTABLE, 0
	}
	return ask(unix.NETLINK_NETFILTER,
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, nfgen(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES), nil),
		message(unix.NFNL_SUBSYS_NFTABLES<<8|typ, flags|unix.NLM_F_ACK, nfgen(family, 0), table),
		message(unix.NFNL_MSG_BATCH_END, 0, nfgen(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES), nil))
}
