package egress

import (
	"errors"

	"golang.org/x/sys/unix"
)

// changes is a netlink socket that reports changed addresses, routes and links
// (rtnetlink(7)); it needs no capability.
type changes struct{ fd int }

// watchChanges returns nil if the socket can't be opened.
func watchChanges() *changes {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil
	}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil
	}
	return &changes{fd}
}

// any reports whether something has changed since the last call. The messages are
// discarded, also after an overrun (ENOBUFS): everything is read again.
func (c *changes) any() (changed bool) {
	if c == nil {
		return false
	}
	var buf [1]byte // of a message; the rest is thrown away
	for {
		_, _, err := unix.Recvfrom(c.fd, buf[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return changed
		}
		changed = true
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return true
		}
	}
}
