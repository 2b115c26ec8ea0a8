package room

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// backlog is how many connections wait while there is no guard; the kernel
// lowers it to net.core.somaxconn.
const backlog = 4096

// openSockets opens what is handed over, in the order of handover.Sockets.
func openSockets(fs families) ([]int, error) {
	var fds []int
	open := func(typ int, port uint16) error {
		fd, err := listener(fs, typ, port)
		if err == nil {
			fds = append(fds, fd)
		}
		return err
	}
	err := open(unix.SOCK_DGRAM, firewall.PortDNS)
	for _, port := range []uint16{firewall.PortDNS, firewall.PortHTTP, firewall.PortTLS, firewall.PortTCP, firewall.PortProxy} {
		if err == nil {
			err = open(unix.SOCK_STREAM, port)
		}
	}
	if err == nil {
		var fd int
		if fd, err = nflogSocket(firewall.NFLogGroup); err == nil {
			fds = append(fds, fd)
		}
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, err
	}
	return fds, nil
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

func listener(fs families, typ int, port uint16) (int, error) {
	fd, err := roomSocket(fs, typ)
	if err != nil {
		return -1, fmt.Errorf("socket for port %d: %w", port, err)
	}
	// For TCP, so that connections in TIME_WAIT don't keep the port; for UDP
	// it would let others bind the same.
	if typ == unix.SOCK_STREAM {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		if len(fs) > 1 {
			err = unix.Bind(fd, &unix.SockaddrInet6{Port: int(port)})
		} else {
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port)})
		}
	}
	if err == nil && typ == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on port %d: %w", port, err)
	}
	return fd, nil
}

// nflogSocket binds a group of NFLOG (include/uapi/linux/netfilter/
// nfnetlink_log.h): the first 128 bytes of each packet, sent at once
// (threshold 1, or events come a second late), numbered so that lost ones can
// be counted. A group has one listener per namespace; another gets EPERM.
func nflogSocket(group uint16) (int, error) {
	fd, err := netlinkSocket(unix.NETLINK_NETFILTER)
	if err != nil {
		return -1, err
	}
	b := &batch{}
	b.begin(unix.NFNL_SUBSYS_ULOG<<8|nfulnlMsgConfig, unix.NLM_F_ACK, fmt.Sprintf("NFLOG group %d", group))
	b.raw(unix.AF_UNSPEC, unix.NFNETLINK_V0, byte(group>>8), byte(group))
	b.attr(nfulaCfgCmd, []byte{nfulnlCfgCmdBind})
	b.attr(nfulaCfgMode, append(binary.BigEndian.AppendUint32(nil, 128), nfulnlCopyPacket, 0))
	b.be32(nfulaCfgQThresh, 1)
	b.attr(nfulaCfgFlags, binary.BigEndian.AppendUint16(nil, nfulnlCfgFSeq))
	if err := b.send(fd, nil); err != nil {
		unix.Close(fd)
		return -1, err
	}
	// A burst of denials waits here for the guard. Forcing needs
	// CAP_NET_ADMIN over the machine, which a rootless room has not.
	const buffer = 1 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Of nfnetlink_log.h.
const (
	nfulnlMsgConfig  = 1
	nfulaCfgCmd      = 1
	nfulaCfgMode     = 2
	nfulaCfgQThresh  = 5
	nfulaCfgFlags    = 6
	nfulnlCfgCmdBind = 1
	nfulnlCopyPacket = 2
	nfulnlCfgFSeq    = 1
)
