// Package peercred tells who is at the other side of a unix socket.
package peercred

import (
	"net"

	"golang.org/x/sys/unix"
)

// Of returns what the kernel noted of the process that connected, or that listens
// where this one connected (SO_PEERCRED, unix(7)). A pid of 0 is one that the
// caller's pid namespace doesn't know.
func Of(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, failed
}
