//go:build linux

package probe

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// families, kinds and protocols by the names of socket(2).
var (
	families = map[string]int{
		"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK,
		"AF_PACKET": unix.AF_PACKET, "AF_VSOCK": unix.AF_VSOCK, "AF_ALG": unix.AF_ALG, "AF_BLUETOOTH": unix.AF_BLUETOOTH,
		"AF_CAN": unix.AF_CAN, "AF_TIPC": unix.AF_TIPC, "AF_XDP": unix.AF_XDP, "AF_KEY": unix.AF_KEY, "AF_RDS": unix.AF_RDS,
		"AF_SMC": unix.AF_SMC,
	}
	kinds = map[string]int{
		"SOCK_STREAM": unix.SOCK_STREAM, "SOCK_DGRAM": unix.SOCK_DGRAM, "SOCK_RAW": unix.SOCK_RAW,
		"SOCK_SEQPACKET": unix.SOCK_SEQPACKET, "SOCK_PACKET": unix.SOCK_PACKET,
	}
	protocols = map[string]int{
		"IPPROTO_ICMP": unix.IPPROTO_ICMP, "IPPROTO_ICMPV6": unix.IPPROTO_ICMPV6, "IPPROTO_TCP": unix.IPPROTO_TCP,
		"IPPROTO_UDP": unix.IPPROTO_UDP, "IPPROTO_UDPLITE": unix.IPPROTO_UDPLITE, "IPPROTO_SCTP": unix.IPPROTO_SCTP,
		"IPPROTO_RAW": unix.IPPROTO_RAW, "IPPROTO_MPTCP": unix.IPPROTO_MPTCP, "IPPROTO_DCCP": unix.IPPROTO_DCCP,
	}
)

// number reads a constant's name or a plain number.
func number(names map[string]int, s string) (int, bool) {
	if n, ok := names[strings.ToUpper(s)]; ok {
		return n, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func socket(a args) (string, string) {
	family, ok1 := number(families, a.pos[0])
	kind, ok2 := number(kinds, a.pos[1])
	proto, ok3 := number(protocols, a.at(2, "0"))
	if !ok1 || !ok2 || !ok3 {
		return "ERROR", "no such constant"
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return seenOf(err)
}

// sockopt sets the options that would lead around rules: a mark, a foreign
// source address, a device.
func sockopt(a args) (string, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return seenOf(err)
	}
	defer unix.Close(fd)
	if dev := a.opt("device", ""); dev != "" {
		return seenOf(unix.BindToDevice(fd, dev))
	}
	switch what := a.at(0, ""); what {
	case "mark":
		return seenOf(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1))
	case "transparent":
		return seenOf(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1))
	case "freebind":
		return seenOf(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1))
	default:
		return "ERROR", "no such option: " + what
	}
}
