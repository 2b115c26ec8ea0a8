// Package kernel reads what a room's own rules refused: the packets that
// netfilter copies to its log group (NFLOG).
package kernel

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Packet is the head of a refused packet.
type Packet struct {
	Dst      netip.Addr
	Port     uint16 // 0 where the protocol has none
	Protocol string // tcp, udp, icmp, or ip with the number of linux/in.h
	UID      uint32 // of the sender, in its user namespace
	HasUID   bool
	// Seq is the kernel's count of packets logged to this socket; gaps are
	// packets that didn't fit into its buffer.
	Seq    uint32
	HasSeq bool
}

// Numbers of linux/netfilter/nfnetlink.h and nfnetlink_log.h.
const (
	typePacket  = unix.NFNL_SUBSYS_ULOG<<8 | 0 // NFULNL_MSG_PACKET
	attrPayload = 9                            // NFULA_PAYLOAD
	attrUID     = 11                           // NFULA_UID
	attrSeq     = 12                           // NFULA_SEQ
	nlaMask     = 0x3fff
)

// Read reads from the socket until it is closed and calls packet for each
// refused packet, and lost when some didn't fit into the socket's buffer; with
// known sequence numbers it says how many (else 0).
func Read(r io.Reader, packet func(Packet), lost func(n uint64)) {
	buf := make([]byte, 64<<10)
	var next uint32
	known := false
	for {
		n, err := r.Read(buf)
		if errors.Is(err, unix.ENOBUFS) {
			if !known {
				lost(0)
			}
			continue // the gap in the sequence tells how many
		}
		if err != nil || n == 0 {
			return
		}
		for _, p := range parse(buf[:n]) {
			if p.HasSeq {
				if known && p.Seq != next {
					lost(uint64(p.Seq - next))
				}
				next, known = p.Seq+1, true
			}
			packet(p)
		}
	}
}

// parse reads the netlink messages of one datagram; what isn't a logged packet
// is skipped.
func parse(b []byte) []Packet {
	var out []Packet
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		kind := binary.NativeEndian.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) {
			break
		}
		// struct nfgenmsg has 4 bytes.
		if kind == typePacket && size >= unix.SizeofNlMsghdr+4 {
			if p, ok := attributes(b[unix.SizeofNlMsghdr+4 : size]); ok {
				out = append(out, p)
			}
		}
		b = b[min(len(b), align(size)):]
	}
	return out
}

func align(n int) int { return (n + 3) &^ 3 }

func attributes(b []byte) (p Packet, ok bool) {
	for len(b) >= 4 {
		size := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:]) & nlaMask
		if size < 4 || size > len(b) {
			break
		}
		v := b[4:size]
		switch {
		case kind == attrPayload:
			ok = p.payload(v)
		case kind == attrUID && len(v) >= 4:
			p.UID, p.HasUID = binary.BigEndian.Uint32(v), true
		case kind == attrSeq && len(v) >= 4:
			p.Seq, p.HasSeq = binary.BigEndian.Uint32(v), true
		}
		b = b[min(len(b), align(size)):]
	}
	return p, ok
}

// payload reads the IP header and the ports behind it.
func (p *Packet) payload(b []byte) bool {
	var proto byte
	var rest []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		head := int(b[0]&15) * 4
		if head < 20 || head > len(b) {
			return false
		}
		proto, p.Dst, rest = b[9], netip.AddrFrom4([4]byte(b[16:20])), b[head:]
	case len(b) >= 40 && b[0]>>4 == 6:
		proto, p.Dst, rest = b[6], netip.AddrFrom16([16]byte(b[24:40])), b[40:]
	default:
		return false
	}
	switch proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		if len(rest) >= 4 {
			p.Port = binary.BigEndian.Uint16(rest[2:])
		}
	}
	p.Protocol = protocolName(proto)
	return true
}

func protocolName(n byte) string {
	switch n {
	case unix.IPPROTO_TCP:
		return "tcp"
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		return "icmp"
	case unix.IPPROTO_SCTP:
		return "sctp"
	}
	const digits = "0123456789"
	s := []byte("ip")
	if n >= 100 {
		s = append(s, digits[n/100])
	}
	if n >= 10 {
		s = append(s, digits[n/10%10])
	}
	return string(append(s, digits[n%10]))
}
