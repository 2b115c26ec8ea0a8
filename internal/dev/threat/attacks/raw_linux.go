package attacks

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// raw sends one packet by a raw socket; with header=1 the IP header is ours
// too, and with it the source (raw(7), IP_HDRINCL).
func raw(words []string, opts map[string]string) (string, string) {
	to, err := netip.ParseAddr(words[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	proto := number(words[1], 0)
	payload := segment(proto, 40000, uint16(number(opts["port"], 9000)))
	socketProto := proto
	if opts["header"] != "" {
		from := to
		if f := opts["from"]; f != "" {
			if from, err = netip.ParseAddr(f); err != nil {
				return "ERROR", err.Error()
			}
		}
		if next := opts["next"]; next != "" { // an extension header of eight bytes before the payload
			payload = append([]byte{byte(proto), 0, 1, 4, 0, 0, 0, 0}, payload...)
			proto = number(next, 0)
		}
		payload = append(header(from, to, byte(proto), len(payload), opts["fragment"] != ""), payload...)
		socketProto = unix.IPPROTO_RAW // which implies IP_HDRINCL
	}
	fd, err := unix.Socket(family(to), unix.SOCK_RAW|unix.SOCK_CLOEXEC, socketProto)
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, payload, 0, sockaddr(to, 0)); err != nil {
		return probe.Seen(err)
	}
	return "sent", ""
}

// segment is the beginning of what the protocol carries: a TCP SYN, a UDP
// datagram, an echo request, or bytes.
func segment(proto int, from, to uint16) []byte {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	switch proto {
	case unix.IPPROTO_TCP:
		return append(ports, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, 2, 0xff, 0xff, 0, 0, 0, 0)
	case unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE:
		return append(ports, 0, 13, 0, 0, 'p', 'r', 'o', 'b', 'e')
	case unix.IPPROTO_ICMP:
		return []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
	case unix.IPPROTO_ICMPV6:
		return []byte{128, 0, 0, 0, 0, 1, 0, 1}
	}
	return append(ports, []byte("probe of another protocol")...)
}

// header is an IP header; the kernel fills in checksum and lengths of IPv4.
func header(from, to netip.Addr, proto byte, size int, fragment bool) []byte {
	if to.Is6() {
		b := []byte{6 << 4, 0, 0, 0, byte(size >> 8), byte(size), proto, 64}
		b = append(b, from.AsSlice()...)
		return append(b, to.AsSlice()...)
	}
	b := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, proto, 0, 0}
	if fragment {
		b[6] = 0x20 // more fragments follow
	}
	binary.BigEndian.PutUint16(b[2:], uint16(20+size))
	b = append(b, from.AsSlice()...)
	return append(b, to.AsSlice()...)
}

// frame puts a packet on lo by a packet socket: OUTPUT, its rules and its NAT
// never see it, the way in does. It tells what came back.
func frame(words []string, opts map[string]string) (seen, detail string) {
	to, err := netip.ParseAddrPort(words[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	from := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 40001)
	if to.Addr().Is6() {
		from = netip.AddrPortFrom(netip.IPv6Loopback(), 40001)
	}
	if f := opts["from"]; f != "" {
		if from, err = netip.ParseAddrPort(f); err != nil {
			return "ERROR", err.Error()
		}
	}
	proto := unix.IPPROTO_TCP
	if opts["proto"] == "udp" {
		proto = unix.IPPROTO_UDP
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(network(unix.ETH_P_ALL)))
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	if opts["hear"] != "" {
		l, err := net.ListenPacket("udp", fmt.Sprintf(":%d", to.Port()))
		if err != nil {
			return probe.Seen(err)
		}
		defer l.Close()
		defer func() {
			_ = l.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a busy machine delivers late
			if _, _, err := l.ReadFrom(make([]byte, 1)); err == nil {
				seen = "heard"
			}
		}()
	}
	kind := network(unix.ETH_P_IP)
	if to.Addr().Is6() {
		kind = network(unix.ETH_P_IPV6)
	}
	packet := segment(proto, from.Port(), to.Port())
	packet = append(header(from.Addr(), to.Addr(), byte(proto), len(packet), false), packet...)
	seal(packet, proto)
	const loopback = 1 // lo is the first interface of every namespace
	at := &unix.SockaddrLinklayer{Protocol: kind, Ifindex: loopback, Halen: 6}
	if err := unix.Sendto(fd, packet, 0, at); err != nil {
		return probe.Seen(err)
	}
	return answer(fd, to.Port(), from.Port(), proto)
}

// answer waits for a segment from the port to ours.
func answer(fd int, from, to uint16, proto int) (string, string) {
	buf := make([]byte, 2048)
	// Loopback answers before the send returns; the rest is for a busy machine.
	for end := time.Now().Add(40 * time.Millisecond); time.Now().Before(end); {
		if n, err := poll(fd, unix.POLLIN, 20); n == 0 || err != nil {
			continue
		}
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || n < 20 {
			continue
		}
		var rest []byte
		switch {
		case buf[0]>>4 == 4 && int(buf[9]) == proto:
			rest = buf[int(buf[0]&15)*4 : n]
		case buf[0]>>4 == 6 && n > 40 && int(buf[6]) == proto:
			rest = buf[40:n]
		}
		if len(rest) < 8 || binary.BigEndian.Uint16(rest) != from || binary.BigEndian.Uint16(rest[2:]) != to {
			continue
		}
		if proto == unix.IPPROTO_TCP && len(rest) > 13 && rest[13]&4 != 0 {
			return "reset", ""
		}
		return "answered", ""
	}
	return "silent", ""
}

// seal fills in the checksums that a raw socket would (RFC 1071).
func seal(p []byte, proto int) {
	start, pseudo := 40, []byte(nil)
	if p[0]>>4 == 4 {
		start = 20
		put(p[10:], sum(p[:20]))
		pseudo = append(append(pseudo, p[12:20]...), 0, byte(proto))
	} else {
		pseudo = append(append(pseudo, p[8:40]...), 0, byte(proto))
	}
	body := p[start:]
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(body)))
	at := 16
	if proto == unix.IPPROTO_UDP {
		at = 6
	}
	put(body[at:], sum(append(pseudo, body...)))
}

func put(b []byte, v uint16) { binary.BigEndian.PutUint16(b, v) }

func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i]) << 8
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// network is htons.
func network(v uint16) uint16 { return v<<8 | v>>8 }
