// Package inbound carries connections to published ports: the guard listens on
// its own network and connects to the loopback of a room with sockets that the
// room made.
package inbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timeout bounds one connect inside a room. Loopback answers at once; only a
// full backlog makes it wait.
const timeout = 5 * time.Second

// Socket gives a fresh socket of the room; it is handover.Client's DialSocket.
type Socket func(port int) (*os.File, error)

// Dial connects to a port of the room's loopback, 127.0.0.1 first, then ::1.
func Dial(socket Socket, port uint16) (*net.TCPConn, error) {
	c, err := dial(socket, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	if err == nil {
		return c, nil
	}
	c6, err6 := dial(socket, netip.AddrPortFrom(netip.IPv6Loopback(), port))
	if err6 == nil {
		return c6, nil
	}
	return nil, err // what 127.0.0.1 says is what people expect
}

func dial(socket Socket, to netip.AddrPort) (*net.TCPConn, error) {
	f, err := socket(int(to.Port()))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := connect(raw, to); err != nil {
		return nil, fmt.Errorf("connect to %s in the room: %w", to, err)
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// connect does a bounded connect(2) on a non-blocking socket.
func connect(raw interface {
	Control(func(fd uintptr)) error
}, to netip.AddrPort) error {
	var err error
	cerr := raw.Control(func(fd uintptr) {
		var sa unix.Sockaddr
		if sa, err = sockaddr(int(fd), to); err != nil {
			return
		}
		if err = unix.Connect(int(fd), sa); !errors.Is(err, unix.EINPROGRESS) {
			return
		}
		err = wait(int(fd))
	})
	if cerr != nil {
		return cerr
	}
	return err
}

func wait(fd int) error {
	end := time.Now().Add(timeout)
	for {
		left := time.Until(end)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left/time.Millisecond)+1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.ETIMEDOUT
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil {
			return err
		}
		if code != 0 {
			return unix.Errno(code)
		}
		return nil
	}
}

// sockaddr writes the address in the socket's own family.
func sockaddr(fd int, to netip.AddrPort) (unix.Sockaddr, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return nil, err
	case family == unix.AF_INET6:
		return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}, nil
	case to.Addr().Is4():
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, nil
	}
	return nil, unix.EAFNOSUPPORT
}
