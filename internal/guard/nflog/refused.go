package nflog

import (
	"errors"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NewRefused reads the packet socket of a room without netfilter, which has the
// resets sent to refused connections, and refused packets of other protocols.
// Packets have no uid.
func NewRefused(f syscall.Conn, packet func(Packet), lost func(n uint64)) (*Log, error) {
	return newLog(f, 2048, func(b []byte) {
		if p, ok := refused(b); ok {
			packet(p)
		}
	}, func(fd uintptr, err error) {
		// Packets were dropped before now, and no other packet may follow.
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
		if d := drops(fd); d > 0 {
			lost(d)
		}
	})
}

// drops returns how many packets didn't fit into the socket's buffer since the
// last call (PACKET_STATISTICS of packet(7)).
func drops(fd uintptr) uint64 {
	var s struct{ packets, drops uint32 } // struct tpacket_stats
	size := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_PACKET, unix.PACKET_STATISTICS, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(s.drops)
}

// refused parses a packet from its IP header on. A TCP packet is the reset, which goes
// from the destination of the refused connection to its source.
func refused(b []byte) (p Packet, ok bool) {
	if !p.payload(b) {
		return p, false
	}
	if p.Protocol != "tcp" {
		return p, true
	}
	from := p.Src
	p.Src, p.Dst, p.Port = netip.AddrPortFrom(p.Dst, p.Port), from.Addr(), from.Port()
	return p, p.Port != 0
}
