package room

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// watch makes a packet socket receive packets that indicate a refusal in a family.
func watch(fd int, f firewall.Family) error {
	if err := ownPacketSocket(fd); err != nil {
		return fmt.Errorf("packet socket: descriptor %d %w", fd, err)
	}
	filter, protocol := refused4, uint16(unix.ETH_P_IP)
	if f == firewall.V6 {
		filter, protocol = refused6, unix.ETH_P_IPV6
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return fmt.Errorf("packet socket: filter: %w", err)
	}
	// Bound to a protocol it receives incoming packets only, so none twice.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol>>8 | protocol<<8, Ifindex: loopbackIndex}); err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	return nil
}

// ownPacketSocket refuses anything but an unbound packet socket of this network
// namespace: one of another would show others' traffic.
func ownPacketSocket(fd int) error {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_PACKET {
		return errors.New("is not a packet socket")
	}
	if typ, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || typ != unix.SOCK_DGRAM {
		return errors.New("is not of type SOCK_DGRAM")
	}
	// SIOCGSKNS of linux/sockios.h: the network namespace of a socket.
	ns, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0x894C, 0)
	if errno != 0 {
		return fmt.Errorf("is of a network namespace that isn't the room's: %w", errno)
	}
	defer unix.Close(int(ns))
	var its, ours unix.Stat_t
	if err := errors.Join(unix.Fstat(int(ns), &its), unix.Stat("/proc/thread-self/ns/net", &ours)); err != nil {
		return err
	}
	if its.Ino != ours.Ino || its.Dev != ours.Dev {
		return errors.New("is of another network namespace than the room")
	}
	return nil
}

// received returns how many packets passed a packet socket's filter since the last
// call, including those that didn't fit into its buffer (PACKET_STATISTICS).
func received(fd int) (uint64, error) {
	var s struct{ packets, drops uint32 } // struct tpacket_stats
	size := uint32(unsafe.Sizeof(s))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return 0, os.NewSyscallError("PACKET_STATISTICS", errno)
	}
	return uint64(s.packets), nil // includes drops
}

// snapshot is how much of a packet the guard gets, as with NFLOG.
const snapshot = 128

// The filters pass these packets that arrive on lo:
//   - the reset that answers a SYN to a port where nobody listens: RST and ACK
//     with sequence number 0 (tcp_v4_send_reset of net/ipv4/tcp_ipv4.c), if it
//     comes from a foreign address. It proves that a connection was refused, and by
//     which address, whatever listens a moment later;
//   - UDP to a foreign address except DNS: the ICMP message of a refusal is unreliable,
//     as the kernel rate-limits it;
//   - other protocols except ICMP, and those of extension headers, to foreign addresses.
//
// Foreign addresses are all but 127.0.0.0/8, ::1 and multicast.
var (
	refused4 = filter(func(a *assembler) {
		a.load8(9)
		a.ifEqual(unix.IPPROTO_ICMP, "no")
		a.ifEqual(unix.IPPROTO_TCP, "tcp")
		a.load8(16)
		a.ifEqual(127, "no")
		a.load8(9)
		a.unlessEqual(unix.IPPROTO_UDP, "yes")
		a.load16(6)
		a.ifAny(0x1fff, "no") // of a datagram the first fragment
		a.headerX(0)
		a.loadX16(0) // source port
		a.ifEqual(53, "no")
		a.loadX16(2)
		a.ifEqual(53, "no")
		a.jump("yes")
		a.label("tcp")
		a.load8(12) // source address
		a.ifEqual(127, "no")
		a.load16(6)
		a.ifAny(0x1fff, "no")
		a.headerX(0)
		a.loadX8(13)
		a.unlessEqual(0x14, "no") // RST, ACK
		a.loadX32(4)
		a.unlessEqual(0, "no")
	})
	refused6 = filter(func(a *assembler) {
		a.load8(6)
		a.ifEqual(unix.IPPROTO_ICMPV6, "no")
		a.ifEqual(unix.IPPROTO_TCP, "tcp")
		a.load8(24)
		a.ifEqual(0xff, "no")
		a.unlessLoopback(24, "foreign")
		a.jump("no")
		a.label("foreign")
		a.load8(6)
		a.unlessEqual(unix.IPPROTO_UDP, "yes")
		a.load16(40)
		a.ifEqual(53, "no")
		a.load16(42)
		a.ifEqual(53, "no")
		a.jump("yes")
		a.label("tcp")
		a.unlessLoopback(8, "reset")
		a.jump("no")
		a.label("reset")
		a.load8(53)
		a.unlessEqual(0x14, "no")
		a.load32(44)
		a.unlessEqual(0, "no")
	})
)
