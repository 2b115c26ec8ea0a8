package attacks

import (
	"encoding/binary"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// Messages of nfnetlink: linux/netfilter/nfnetlink_{log,queue,conntrack}.h.
const (
	subsystemFlows, subsystemQueue, subsystemLog = 1, 3, 4

	config         = 1 // NFULNL_MSG_CONFIG is 1, NFQNL_MSG_CONFIG is 2
	configCommand  = 1 // NFULA_CFG_CMD, NFQA_CFG_CMD
	commandBind    = 1
	flowsGet       = 1 // IPCTNL_MSG_CT_GET
	flowsDelete    = 2 // IPCTNL_MSG_CT_DELETE
	roomsLogGroup  = 100
	netfilterMinor = 0 // NFNETLINK_V0
)

// netfilter asks the kernel for what the room's rules see and keep: the denied
// packets of the log group, a queue of packets, the tracked flows.
func netfilter(words []string, _ map[string]string) (string, string) {
	var typ uint16
	var group uint16
	var body []byte
	flags := netlink.Request | netlink.Acknowledge
	switch words[0] {
	case "nflog":
		typ, group, body = subsystemLog<<8|config, roomsLogGroup, attribute(configCommand, []byte{commandBind})
	case "queue":
		typ, body = subsystemQueue<<8|2, attribute(configCommand, []byte{commandBind, 0, 0, unix.AF_INET})
	case "flows":
		typ, flags = subsystemFlows<<8|flowsGet, netlink.Request|netlink.Dump
	case "forget":
		typ = subsystemFlows<<8 | flowsDelete
	default:
		return "ERROR", "nflog, queue, flows or forget"
	}
	head := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, netfilterMinor}, group)
	return ask(unix.NETLINK_NETFILTER, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: flags},
		Data:   append(head, body...),
	})
}

// attribute is one netlink attribute, padded to four bytes.
func attribute(typ uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// destroy asks sock_diag(7) to end a listener (SOCK_DESTROY).
func destroy(words []string, _ map[string]string) (string, string) {
	at, err := netip.ParseAddrPort(words[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	const (
		sockDestroy  = 21 // linux/sock_diag.h
		requestSize  = 56 // struct inet_diag_req_v2
		listenStates = 1 << 10
	)
	b := make([]byte, requestSize)
	b[0], b[1] = byte(family(at.Addr())), unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], listenStates)
	binary.BigEndian.PutUint16(b[8:], at.Port())
	copy(b[12:], at.Addr().AsSlice())
	binary.NativeEndian.PutUint64(b[48:], ^uint64(0)) // any cookie
	return ask(unix.NETLINK_SOCK_DIAG, netlink.Message{
		Header: netlink.Header{Type: sockDestroy, Flags: netlink.Request | netlink.Acknowledge}, Data: b,
	})
}

// ask sends one message and returns the kernel's answer to it.
func ask(subsystem int, m netlink.Message) (string, string) {
	c, err := netlink.Dial(subsystem, nil)
	if err != nil {
		return probe.Seen(err)
	}
	defer c.Close()
	_, err = c.Execute(m)
	return probe.Seen(err)
}
