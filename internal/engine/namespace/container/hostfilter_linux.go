package container

import (
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// hostFilter precedes the filter of a container in the machine's network, the guard.
// Abstract sockets belong to a network namespace, and on the machine's listen its
// window server, a bus, an engine's helpers; Landlock refuses them only from Linux
// 6.12. So the filter allows only unix sockets of the type that a room listens with
// (SOCK_SEQPACKET), no pairs of them that could be sent elsewhere, and of other
// families only those that the guard needs, not Bluetooth for example.
//
// The filter that follows checks the architecture, and kills on a foreign one.
var hostFilter = []unix.SockFilter{
	{Code: bpfLoad, K: 0}, // the number of the call (struct seccomp_data, linux/seccomp.h)
	{Code: bpfJumpEqual, K: unix.SYS_SOCKET, Jt: 1},
	{Code: bpfJumpEqual, K: unix.SYS_SOCKETPAIR, Jf: 9},
	{Code: bpfLoad, K: 16}, // the low half of its first argument, which is an int
	{Code: bpfJumpEqual, K: unix.AF_INET, Jt: 7},
	{Code: bpfJumpEqual, K: unix.AF_INET6, Jt: 6},
	{Code: bpfJumpEqual, K: unix.AF_NETLINK, Jt: 5}, // routes and addresses
	{Code: bpfJumpEqual, K: unix.AF_UNIX, Jf: 3},
	{Code: bpfLoad, K: 24}, // of its second
	{Code: bpfAnd, K: 0xf}, // SOCK_TYPE_MASK (linux/net.h)
	{Code: bpfJumpEqual, K: unix.SOCK_SEQPACKET, Jt: 1},
	{Code: bpfReturn, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
}

// Operations of linux/bpf_common.h.
const (
	bpfLoad      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfAnd       = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfJumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfReturn    = unix.BPF_RET | unix.BPF_K
)

// before returns the beginning of a container's filter.
func before(c *spec.Container) []unix.SockFilter {
	if c.Network.Mode == spec.NetHost {
		return hostFilter
	}
	return nil
}
