package room

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Of linux/netfilter/nfnetlink_log.h.
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

// nflogSocket binds a group of NFLOG: the first 128 bytes of each packet, sent at once
// (threshold 1, or events are a second late), numbered so that lost ones can be
// counted. A group has one listener per namespace; another gets EPERM. The returned
// socket is non-blocking.
func nflogSocket(group uint16) (int, error) {
	c, err := dialNetlink(unix.NETLINK_NETFILTER)
	if err != nil {
		return -1, err
	}
	defer c.Close() // the returned descriptor is a duplicate
	m, err := request(unix.NFNL_SUBSYS_ULOG<<8|nfulnlMsgConfig, unix.NLM_F_ACK, netfilterHeader(unix.AF_UNSPEC, group), binary.BigEndian, func(e *netlink.AttributeEncoder) {
		e.Uint8(nfulaCfgCmd, nfulnlCfgCmdBind)
		e.Bytes(nfulaCfgMode, append(binary.BigEndian.AppendUint32(nil, 128), nfulnlCopyPacket, 0))
		e.Uint32(nfulaCfgQThresh, 1)
		e.Uint16(nfulaCfgFlags, nfulnlCfgFSeq)
	})
	if err != nil {
		return -1, err
	}
	if _, err := c.Execute(m); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return -1, lacks("nfnetlink_log") // the subsystem doesn't exist
	} else if err != nil {
		return -1, fmt.Errorf("NFLOG group %d: %w", group, refusal(err))
	}
	// A burst of denials is buffered here for the guard; a rootless room gets as much as
	// the machine's limit allows.
	_ = c.SetReadBuffer(1 << 20)
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var fd int
	if e := raw.Control(func(socket uintptr) { fd, err = unix.FcntlInt(socket, unix.F_DUPFD_CLOEXEC, 0) }); e != nil {
		return -1, e
	}
	return fd, err
}
