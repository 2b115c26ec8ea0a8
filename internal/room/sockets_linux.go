package room

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// backlog is how many connections wait while there is no guard; the kernel
// lowers it to net.core.somaxconn.
const backlog = 4096

// openSockets opens the sockets to hand over, in the order of handover.Sockets.
func openSockets(fs families) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeFDs(fds)
			fds = nil
		}
	}()
	for _, x := range []struct {
		typ  int
		port uint16
	}{
		{unix.SOCK_DGRAM, firewall.PortDNS}, {unix.SOCK_STREAM, firewall.PortDNS}, {unix.SOCK_STREAM, firewall.PortHTTP},
		{unix.SOCK_STREAM, firewall.PortTLS}, {unix.SOCK_STREAM, firewall.PortProxy}, {unix.SOCK_STREAM, firewall.PortTCP},
	} {
		fd, err := listener(fs, x.typ, x.port)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	fd, err := nflogSocket(firewall.NFLogGroup)
	if err != nil {
		return fds, err
	}
	return append(fds, fd), nil
}

// roomSocket makes a non-blocking socket for both families.
func roomSocket(fs families, typ int) (int, error) {
	family := unix.AF_INET
	if len(fs) > 1 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// listener makes a socket that takes what is sent to a port of any address.
func listener(fs families, typ int, port uint16) (int, error) {
	var at unix.Sockaddr = &unix.SockaddrInet4{Port: int(port)}
	if len(fs) > 1 {
		at = &unix.SockaddrInet6{Port: int(port)}
	}
	fd, err := listenerAt(fs, typ, at)
	if err != nil {
		return -1, fmt.Errorf("listen on port %d: %w", port, err)
	}
	return fd, nil
}

func listenerAt(fs families, typ int, at unix.Sockaddr) (int, error) {
	fd, err := roomSocket(fs, typ)
	if err != nil {
		return -1, err
	}
	// For TCP, so that connections in TIME_WAIT don't block the port; for UDP it would
	// allow others to bind the same one.
	if typ == unix.SOCK_STREAM {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil && typ == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
