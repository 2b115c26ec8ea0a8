// Package peercred returns the credentials of the peer of a unix socket.
package peercred

import (
	"net"

	"golang.org/x/sys/unix"
)

// Of returns the credentials of the process that connected, or of the listener that this
// one connected to (SO_PEERCRED, unix(7)). The pid is 0 for a process outside of the
// caller's pid namespace.
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
