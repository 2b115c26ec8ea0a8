package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// originalDst is SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: the destination
// before REDIRECT (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h).
const originalDst = 80

// OriginalDst returns the address that the worker dialled. It works from another
// network namespace, as the socket's namespace counts.
func OriginalDst(c *net.TCPConn) (netip.AddrPort, error) {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("no peer")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var out netip.AddrPort
	var serr error
	err = raw.Control(func(fd uintptr) {
		if remote.IP.To4() != nil {
			// struct sockaddr_in fits into the 16 bytes of an in6_addr.
			var m *unix.IPv6Mreq
			if m, serr = unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDst); serr == nil {
				b := m.Multiaddr[:]
				out = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4]))
			}
			return
		}
		var m *unix.IPv6MTUInfo
		if m, serr = unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst); serr == nil {
			port := (*[2]byte)(unsafe.Pointer(&m.Addr.Port)) // network byte order
			out = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr).Unmap(), binary.BigEndian.Uint16(port[:]))
		}
	})
	if err == nil {
		err = serr
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", err)
	}
	return out, nil
}

// LocalDst is [OriginalDst] for a room where every address is local. A loopback
// address is an error: the worker meant itself.
func LocalDst(c *net.TCPConn) (netip.AddrPort, error) {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, errors.New("no local address")
	}
	a := local.AddrPort()
	if a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()); a.Addr().IsLoopback() {
		return netip.AddrPort{}, errors.New("loopback was dialled")
	}
	return a, nil
}
