//go:build linux

package probe

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

func udp(a args) (string, string) {
	c, err := a.dialer().Dial("udp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	if _, err := c.Write([]byte(a.opt("send", "probe"))); err != nil {
		return seenOf(err)
	}
	buf := make([]byte, 2048)
	n, err := c.Read(buf)
	if err != nil {
		return seenOf(err)
	}
	return "data", text(buf[:n])
}

// icmp sends an echo request by an unprivileged datagram socket (as current ping(8)), or
// a raw one, and waits for a reply.
func icmp(a args) (string, string) {
	ip, err := netip.ParseAddr(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	family, proto, echo := unix.AF_INET, unix.IPPROTO_ICMP, byte(8) // RFC 792
	var to unix.Sockaddr
	if ip.Is4() {
		to = &unix.SockaddrInet4{Addr: ip.As4()}
	} else {
		family, proto, echo = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128 // RFC 4443
		to = &unix.SockaddrInet6{Addr: ip.As16()}
	}
	kind := unix.SOCK_DGRAM
	if a.opt("raw", "") != "" {
		kind = unix.SOCK_RAW
	}
	at := func(call string, err error) (string, string) {
		seen, detail := seenOf(err)
		return seen, call + ": " + detail
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return at("socket", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(a.limit.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return at("setsockopt", err)
	}
	message := []byte{echo, 0, 0, 0, 0, 1, 0, 1, 'p', 'r', 'o', 'b', 'e', '!'}
	if kind == unix.SOCK_RAW && family == unix.AF_INET {
		sum := checksum(message)
		message[2], message[3] = byte(sum>>8), byte(sum)
	}
	// connected, so that the kernel reports ICMP errors
	if err := unix.Connect(fd, to); err != nil {
		return at("connect", err)
	}
	if _, err := unix.Write(fd, message); err != nil {
		return at("send", err)
	}
	buf := make([]byte, 2048)
	for end := time.Now().Add(a.limit); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			return at("recvfrom", err)
		}
		answer := buf[:n]
		if kind == unix.SOCK_RAW && family == unix.AF_INET && n > 20 {
			answer = buf[int(buf[0]&15)*4 : n] // after the IP header
		}
		// a raw socket on loopback sees the request too
		if len(answer) > 0 && (answer[0] == 0 || answer[0] == 129) {
			return "reply", fmt.Sprintf("%d bytes", n)
		}
	}
	return "TIMEOUT", "no answer"
}

// checksum is the internet checksum of RFC 1071; the kernel fills it in for
// datagram sockets and for ICMPv6.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
