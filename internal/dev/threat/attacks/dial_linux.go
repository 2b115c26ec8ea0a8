package attacks

import (
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// Option types of IPv4, RFC 791 §3.1.
const looseRoute = 131

// dial makes a socket with the options and connects or sends by it.
func dial(words []string, opts map[string]string) (string, string) {
	to, err := netip.ParseAddrPort(words[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	kind, proto := unix.SOCK_STREAM, number(opts["proto"], 0)
	if opts["type"] == "dgram" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family(to.Addr()), kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	if err := prepare(fd, to.Addr(), opts); err != nil {
		return probe.Seen(err)
	}
	if text := opts["fastopen"]; text != "" { // data in the SYN, RFC 7413
		err = unix.Sendto(fd, []byte(text), unix.MSG_FASTOPEN, sockaddr(to.Addr(), to.Port()))
	} else {
		err = unix.Connect(fd, sockaddr(to.Addr(), to.Port()))
	}
	if err == unix.EINPROGRESS {
		err = writable(fd, limit(opts))
	}
	if err != nil || kind == unix.SOCK_STREAM {
		if err == nil {
			return "open", ""
		}
		return probe.Seen(err)
	}
	if _, err := unix.Write(fd, []byte("probe")); err != nil {
		return probe.Seen(err)
	}
	_, err = poll(fd, unix.POLLIN, 50)
	if no, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); no != 0 {
		return probe.Seen(unix.Errno(no))
	}
	if err != nil {
		return probe.Seen(err)
	}
	return "sent", ""
}

// prepare sets the options of dial.
func prepare(fd int, to netip.Addr, opts map[string]string) error {
	level, transparent, freebind := unix.SOL_IP, unix.IP_TRANSPARENT, unix.IP_FREEBIND
	if to.Is6() {
		level, transparent, freebind = unix.SOL_IPV6, unix.IPV6_TRANSPARENT, unix.IPV6_FREEBIND
	}
	if mark := opts["mark"]; mark != "" {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, number(mark, 0)); err != nil {
			return err
		}
	}
	if opts["transparent"] != "" {
		if err := unix.SetsockoptInt(fd, level, transparent, 1); err != nil {
			return err
		}
	}
	if opts["freebind"] != "" {
		if err := unix.SetsockoptInt(fd, level, freebind, 1); err != nil {
			return err
		}
	}
	if via := opts["via"]; via != "" { // source routing: first to via, then on
		hop, err := netip.ParseAddr(via)
		if err != nil {
			return err
		}
		four := hop.As4()
		option := append([]byte{looseRoute, 7, 4}, four[:]...)
		if err := unix.SetsockoptString(fd, unix.SOL_IP, unix.IP_OPTIONS, string(append(option, 0))); err != nil {
			return err
		}
	}
	if from := opts["from"]; from != "" {
		ip, err := netip.ParseAddr(from)
		if err != nil {
			return err
		}
		return unix.Bind(fd, sockaddr(ip, 0))
	}
	return nil
}

// writable waits for the end of a connect.
func writable(fd int, limit time.Duration) error {
	n, err := poll(fd, unix.POLLOUT, int(limit.Milliseconds()))
	if err != nil {
		return err
	}
	if n == 0 {
		return unix.ETIMEDOUT
	}
	no, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && no != 0 {
		err = unix.Errno(no)
	}
	return err
}

// poll is poll(2), again where a signal of Go's scheduler interrupts it.
func poll(fd int, events int16, millis int) (n int, err error) {
	for {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, millis)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// share binds as a second server of the same port would.
func share(words []string, _ map[string]string) (string, string) {
	at, err := netip.ParseAddrPort(words[1])
	if err != nil {
		return "ERROR", err.Error()
	}
	kind := unix.SOCK_STREAM
	if words[0] == "udp" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family(at.Addr()), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return probe.Seen(err)
	}
	defer unix.Close(fd)
	for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
			return probe.Seen(err)
		}
	}
	if err := unix.Bind(fd, sockaddr(at.Addr(), at.Port())); err != nil {
		return probe.Seen(err)
	}
	if kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 1)
	}
	return probe.Seen(err)
}

func family(a netip.Addr) int {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func sockaddr(a netip.Addr, port uint16) unix.Sockaddr {
	if a.Is6() {
		return &unix.SockaddrInet6{Addr: a.As16(), Port: int(port)}
	}
	return &unix.SockaddrInet4{Addr: a.As4(), Port: int(port)}
}

// number reads a decimal, or returns the default.
func number(s string, def int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return def
}
