package container

import (
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// hostFilter comes before the filter of a container in the machine's network,
// the guard. Abstract sockets belong to a network, and behind those of the
// machine are its window server, a bus, an engine's helpers; Landlock refuses
// them from Linux 6.12 on only. So there are no unix sockets but those of the
// type that a room listens with (SOCK_SEQPACKET), no pairs of them that could be
// sent elsewhere, and of the other families those of the guard's work: what else
// the machine has, Bluetooth perhaps, is not for it.
//
// The architecture is looked at by what follows, which ends who has another one.
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

// before is what a container's filter begins with.
func before(c *spec.Container) []unix.SockFilter {
	if c.Network.Mode == spec.NetHost {
		return hostFilter
	}
	return nil
}
