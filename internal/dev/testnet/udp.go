package testnet

import (
	"context"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startUDP starts UDP echo servers on every address; what has no server is
// counted by the meter all the same.
func (in *Internet) startUDP() error {
	for _, port := range []string{":7", ":443", ":5000"} {
		if err := in.serveUDP("udp4", "0.0.0.0"+port); err != nil {
			return err
		}
		if in.IPv6 {
			if err := in.serveUDP("udp6", "[::]"+port); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Internet) serveUDP(network, addr string) error {
	lc := net.ListenConfig{Control: freebind}
	pc, err := lc.ListenPacket(context.Background(), network, addr)
	if err != nil {
		return err
	}
	in.onClose(func() { pc.Close() })
	u := pc.(*net.UDPConn)
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	if err := raw.Control(func(fd uintptr) {
		if network == "udp4" {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		} else {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	}); err != nil {
		return err
	}
	go func() {
		buf, oob := make([]byte, 64<<10), make([]byte, 128)
		for {
			n, oobn, _, from, err := u.ReadMsgUDPAddrPort(buf, oob)
			if err != nil {
				return
			}
			_, _, _ = u.WriteMsgUDPAddrPort(buf[:n], source(oob[:oobn]), from)
		}
	}()
	return nil
}

// source turns the control message that says where a packet was sent to into
// the one that makes the answer come from there (ip(7), ipv6(7)).
func source(oob []byte) []byte {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range msgs {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			got := (*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: got.Addr})
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			got := (*unix.Inet6Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: got.Addr})
		}
	}
	return nil
}
