// Package kernelsupport reports whether the kernel has the netfilter modules for a
// room, and makes the packet sockets for a room without them (docs/decisions/anyip.md).
// It is for the creator of the room's network namespace, which links no more of a room.
package kernelsupport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Extension is a match or target of xtables.
type Extension struct {
	Family   byte // unix.NFPROTO_IPV4 or NFPROTO_IPV6
	Name     string
	Revision uint32
	Target   bool
}

// Module returns the kernel module of the extension.
func (x Extension) Module() string {
	switch {
	case x.Name == "tcp" || x.Name == "udp":
		return "xt_tcpudp"
	case x.Name == "REJECT" && x.Family == unix.NFPROTO_IPV6:
		return "ip6t_REJECT"
	case x.Name == "REJECT":
		return "ipt_REJECT"
	}
	return "xt_" + x.Name
}

// Extensions returns the extensions that a room's rules use; a test of package room
// compares them.
func Extensions() (out []Extension) {
	for _, f := range []byte{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6} {
		out = append(out, Extension{f, "REDIRECT", 0, true}, Extension{f, "tcp", 0, false}, Extension{f, "udp", 0, false},
			Extension{f, "conntrack", 3, false}, Extension{f, "NFLOG", 0, true}, Extension{f, "REJECT", 0, true})
	}
	return out
}

// ErrNobody means that the kernel has no nfnetlink at all.
var ErrNobody = errors.New("the kernel has no nfnetlink")

// Of linux/netfilter/nf_tables_compat.h, nf_tables.h and nfnetlink.h.
const (
	compatGet      = 11 << 8 // NFNL_SUBSYS_NFT_COMPAT; NFNL_MSG_COMPAT_GET is 0
	tablesGetGen   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	nftaCompatName = 1
	nftaCompatRev  = 2
	nftaCompatType = 3
)

// Missing asks the kernel, in the network namespace of the calling thread, which
// modules it lacks for these extensions by nf_tables. It creates nothing, but may load
// modules. It can't ask for nft_chain_nat, which chains also need. It needs
// CAP_NET_ADMIN in the namespace. On error the kernel didn't answer; without nfnetlink
// the error is [ErrNobody].
func Missing(exts []Extension) (modules []string, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err == unix.EPROTONOSUPPORT || err == unix.EAFNOSUPPORT {
		return []string{"nfnetlink", "nf_tables", "nft_compat"}, ErrNobody
	}
	if err != nil {
		return nil, fmt.Errorf("nfnetlink: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("nfnetlink: %w", err)
	}
	// The first separately: without the subsystem the kernel tries to load its module
	// at each question.
	for _, part := range [][]Extension{exts[:min(1, len(exts))], exts[min(1, len(exts)):]} {
		answers, err := compat(fd, part)
		if err != nil {
			return nil, fmt.Errorf("nfnetlink: %w", err)
		}
		for i, errno := range answers {
			module := part[i].Module()
			switch errno {
			case 0, unix.EPROTONOSUPPORT: // exists, perhaps in another revision: adding the rule will tell
				continue
			case unix.ENOENT:
			case unix.EINVAL: // no such subsystem (nfnetlink_rcv_msg of net/netfilter/nfnetlink.c)
				modules, err := tables(fd)
				return append(modules, "nft_compat"), err
			default:
				return nil, fmt.Errorf("nfnetlink: %s: %w", module, errno)
			}
			if !slices.Contains(modules, module) {
				modules = append(modules, module)
			}
		}
	}
	return modules, nil
}

// tables returns nf_tables if it is missing.
func tables(fd int) ([]string, error) {
	answers, err := exchange(fd, [][]byte{message(tablesGetGen, 1, unix.NFPROTO_UNSPEC, nil)})
	if err == nil && answers[0] == 0 {
		return nil, nil
	}
	return []string{"nf_tables"}, err
}

// compat asks for extensions in one system call, as iptables-nft does.
func compat(fd int, exts []Extension) ([]unix.Errno, error) {
	var questions [][]byte
	for i, x := range exts {
		typ := uint32(0)
		if x.Target {
			typ = 1
		}
		var a []byte
		a = attribute(a, nftaCompatName, append([]byte(x.Name), 0))
		a = attribute(a, nftaCompatRev, binary.BigEndian.AppendUint32(nil, x.Revision))
		a = attribute(a, nftaCompatType, binary.BigEndian.AppendUint32(nil, typ))
		questions = append(questions, message(compatGet, i+1, x.Family, a))
	}
	return exchange(fd, questions)
}

// message encodes an nfnetlink message: struct nlmsghdr, struct nfgenmsg, attributes.
func message(typ uint16, sequence int, family byte, attributes []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+4+len(attributes)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, uint32(sequence))
	b = append(b, 0, 0, 0, 0, family, unix.NFNETLINK_V0, 0, 0)
	return append(b, attributes...)
}

// attribute appends a struct nlattr and its value, padded.
func attribute(b []byte, typ uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

// exchange sends questions, numbered from 1, and returns the kernel's answer to each: 0
// or an error. All answers are available once the questions are sent.
func exchange(fd int, questions [][]byte) ([]unix.Errno, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	if err := unix.Sendto(fd, slices.Concat(questions...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	out, buf := make([]unix.Errno, len(questions)), make([]byte, 4096)
	for range questions {
		n, from, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
		if err != nil {
			return nil, err
		}
		if a, ok := from.(*unix.SockaddrNetlink); !ok || a.Pid != 0 || n < unix.NLMSG_HDRLEN+4 {
			return nil, errors.New("an answer that is not the kernel's")
		}
		at := int(binary.NativeEndian.Uint32(buf[8:])) - 1
		if at < 0 || at >= len(out) {
			return nil, errors.New("an answer without a question")
		}
		if binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
			continue
		}
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(buf[unix.NLMSG_HDRLEN:])))
		// Without permission there is one answer for all questions.
		if errno == unix.EPERM {
			return nil, errno
		}
		out[at] = errno
	}
	return out, nil
}

// numPackets is how many packet sockets a room of both families needs: for each family
// one that the guard reads, and one that only counts.
const numPackets = 4

// PacketSockets makes the packet sockets of `workshop-init room --packet-fds` in the
// network namespace of the calling thread. They receive nothing yet. It needs
// CAP_NET_RAW there, which the room itself never has: the creator of the namespace
// calls this before it drops its capabilities.
func PacketSockets() (fds []int, err error) {
	for range numPackets {
		// SOCK_DGRAM: packets begin with their IP header (packet(7)).
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			return nil, fmt.Errorf("packet socket: %w", err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}
