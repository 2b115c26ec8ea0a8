package room

import (
	"encoding/binary"

	"github.com/google/nftables/xt"

	"github.com/llmdo/workshop/firewall"
)

// Matches and targets of xtables. The library has the structures of most; those of
// NFLOG and REJECT are below. A test reads all of them back.

func xtPorts(p firewall.Protocol, ports firewall.PortRange) xt.InfoAny {
	source, destination := [2]uint16{0, 65535}, [2]uint16{ports.First, ports.Last}
	if p == firewall.UDP {
		return &xt.Udp{SrcPorts: source, DstPorts: destination}
	}
	return &xt.Tcp{SrcPorts: source, DstPorts: destination}
}

// xtNotDNAT is `! --ctstate DNAT`.
func xtNotDNAT() xt.InfoAny {
	const dnat = 1 << 7 // XT_CONNTRACK_STATE_DNAT, 1 << (IP_CT_NUMBER + 2)
	var info xt.ConntrackMtinfo3
	info.MatchFlags, info.InvertFlags, info.StateMask = uint16(xt.ConntrackState), uint16(xt.ConntrackState), dnat
	return &info
}

func xtRedirect(f firewall.Family, port uint16) xt.InfoAny {
	const flags = uint(xt.NatRangeProtoSpecified)
	if f == firewall.V6 {
		return &xt.NatRange{Flags: flags, MinPort: port, MaxPort: port}
	}
	return &xt.NatIPv4MultiRangeCompat{{Flags: flags, MinPort: port, MaxPort: port}}
}

// unknown encodes a structure that the library lacks, padded to eight bytes as
// nft_compat requires.
func unknown(info any) xt.InfoAny {
	b, err := binary.Append(nil, binary.NativeEndian, info)
	if err != nil {
		panic(err) // not a structure of fixed size
	}
	u := xt.Unknown(append(b, make([]byte, -len(b)&7)...))
	return &u
}

// xtNFLog is struct xt_nflog_info (linux/netfilter/xt_NFLOG.h), here with
// XT_NFLOG_F_COPY_LEN and no prefix.
func xtNFLog(l *firewall.NFLog) xt.InfoAny {
	const copyLen = 1 << 0
	return unknown(struct {
		Len                          uint32
		Group, Threshold, Flags, Pad uint16
		Prefix                       [64]byte
	}{Len: l.Size, Group: l.Group, Threshold: l.Threshold, Flags: copyLen})
}

// xtReject is enum ipt_reject_with (linux/netfilter_ipv4/ipt_REJECT.h) or
// ip6t_reject_with (linux/netfilter_ipv6/ip6t_REJECT.h). For IPv4 the kernel silently
// accepts invalid values.
func xtReject(f firewall.Family, r firewall.RejectWith) xt.InfoAny {
	var with uint32
	switch {
	case f == firewall.V4 && r == firewall.RejectReset:
		with = 7 // IPT_TCP_RESET
	case f == firewall.V4:
		with = 8 // IPT_ICMP_ADMIN_PROHIBITED
	case r == firewall.RejectReset:
		with = 6 // IP6T_TCP_RESET
	default:
		with = 1 // IP6T_ICMP6_ADM_PROHIBITED
	}
	return unknown(with)
}
