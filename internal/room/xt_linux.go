package room

import (
	"encoding/binary"

	"github.com/llmdo/workshop/firewall"
)

// The kernel's structures of xtables matches and targets, in the machine's
// byte order and padded to eight bytes, as nft_compat wants them. Layouts:
// include/uapi/linux/netfilter/{xt_tcpudp,xt_conntrack,xt_NFLOG,nf_nat}.h and
// netfilter_ipv{4,6}/ip*t_REJECT.h. A test reads all of them back.

func padded(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// xtPorts is struct xt_tcp (revision 0), of which struct xt_udp is the
// beginning: source ports, destination ports, then options that are zero.
func xtPorts(ports firewall.PortRange) []byte {
	b := make([]byte, 0, 16)
	for _, v := range []uint16{0, 65535, ports.First, ports.Last} {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	return append(b, make([]byte, 8)...)
}

// Of xt_conntrack.h: XT_CONNTRACK_STATE, and XT_CONNTRACK_STATE_DNAT, which is
// 1 << (IP_CT_NUMBER + 2).
const (
	xtConntrackState     = 1 << 0
	xtConntrackStateDNAT = 1 << 7
)

// xtNotDNAT is struct xt_conntrack_mtinfo3 for `! --ctstate DNAT`.
func xtNotDNAT() []byte {
	b := make([]byte, 168)
	const flags = 8*16 + 2*4 + 5*2 // behind addresses, expiry, protocol and ports
	binary.NativeEndian.PutUint16(b[flags:], xtConntrackState)
	binary.NativeEndian.PutUint16(b[flags+2:], xtConntrackState) // inverted
	binary.NativeEndian.PutUint16(b[flags+4:], xtConntrackStateDNAT)
	return b
}

// xtNFLog is struct xt_nflog_info with XT_NFLOG_F_COPY_LEN and no prefix.
func xtNFLog(l *firewall.NFLog) []byte {
	b := binary.NativeEndian.AppendUint32(make([]byte, 0, 80), l.Size)
	for _, v := range []uint16{l.Group, l.Threshold, 1, 0} {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	return padded(append(b, make([]byte, 64)...))
}

// xtReject is enum ipt_reject_with or ip6t_reject_with. The IPv4 kernel takes
// wrong values without a word.
func xtReject(f firewall.Family, r firewall.RejectWith) []byte {
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
	return padded(binary.NativeEndian.AppendUint32(nil, with))
}

// xtRedirect is struct nf_nat_ipv4_multi_range_compat with one range, or
// struct nf_nat_range, with NF_NAT_RANGE_PROTO_SPECIFIED and one port.
func xtRedirect(f firewall.Family, port uint16) []byte {
	const protoSpecified = 1 << 1
	b := make([]byte, 0, 40)
	addresses := 2 * 16
	if f == firewall.V4 {
		b = binary.NativeEndian.AppendUint32(b, 1) // number of ranges
		addresses = 2 * 4
	}
	b = binary.NativeEndian.AppendUint32(b, protoSpecified)
	b = append(b, make([]byte, addresses)...)
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, port)
	return padded(b)
}
