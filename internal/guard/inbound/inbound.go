// Package inbound carries connections to published ports: the guard listens on
// its own network and connects to the loopback of a room with sockets that the
// room made.
package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/buffers"
)

// timeout bounds one connect inside a room. Loopback answers at once; only a
// full backlog makes it wait.
const timeout = 5 * time.Second

// Socket returns a new socket of the room; it is handover.Client's DialSocket.
type Socket func(port int) (*os.File, error)

// Dial connects to a port of the room's loopback, 127.0.0.1 first, then ::1. It
// returns the address too: the server may have reset the connection, which then has
// no peer.
func Dial(ctx context.Context, socket Socket, port uint16) (*net.TCPConn, netip.AddrPort, error) {
	four := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	c, err := dial(ctx, socket, four)
	if err == nil {
		return c, four, nil
	}
	six := netip.AddrPortFrom(netip.IPv6Loopback(), port)
	if c, err6 := dial(ctx, socket, six); err6 == nil {
		return c, six, nil
	}
	return nil, four, err // people expect the error of 127.0.0.1
}

func dial(ctx context.Context, socket Socket, to netip.AddrPort) (*net.TCPConn, error) {
	f, err := socket(int(to.Port()))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := buffers.Of(ctx).Inside(raw); err != nil {
		return nil, err
	}
	if err := connect(f, raw, to); err != nil {
		return nil, fmt.Errorf("connect to %s in the room: %w", to, err)
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("connect to %s in the room: the socket is %T", to, c)
	}
	return t, nil
}

// connect is connect(2) with a timeout on a socket of the runtime's poller. It must
// not block: each blocked call would hold a thread, and the guard may have few.
func connect(f *os.File, raw syscall.RawConn, to netip.AddrPort) error {
	if err := f.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	began := false
	var err error
	werr := raw.Write(func(fd uintptr) bool {
		if began {
			err = connected(int(fd))
		} else {
			began = true
			var sa unix.Sockaddr
			if sa, err = sockaddr(int(fd), to); err == nil {
				err = unix.Connect(int(fd), sa)
			}
		}
		return !errors.Is(err, unix.EINPROGRESS)
	})
	return cmp.Or(werr, err)
}

// connected returns the result of a connect(2) in progress. The poller may wake up
// too early.
func connected(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return err
	case code != 0:
		return unix.Errno(code)
	}
	if _, err := unix.Getpeername(fd); errors.Is(err, unix.ENOTCONN) {
		return unix.EINPROGRESS
	}
	return nil
}

// sockaddr returns the address in the socket's family.
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
