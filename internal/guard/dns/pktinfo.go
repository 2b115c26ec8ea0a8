package dns

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// oobSize holds the one control message of a question.
const oobSize = 64

// askedAt returns the control message that makes the answer come from the address
// that the question was sent to (IPV6_PKTINFO of ipv6(7), IP_PKTINFO of ip(7)).
// oob has the question's control messages; a room that redirects sends none, and
// the result is nil.
func askedAt(oob []byte) []byte {
	if len(oob) == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			info := *(*unix.Inet6Pktinfo)(unsafe.Pointer(&m.Data[0]))
			info.Ifindex = 0
			return unix.PktInfo6(&info)
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			info := *(*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: info.Addr})
		}
	}
	return nil
}
