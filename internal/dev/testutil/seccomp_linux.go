package testutil

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// WithoutNetfilter makes the calling thread one on a kernel that has no
// netfilter by netlink, with all that it starts from now on: by a seccomp
// filter, socket(AF_NETLINK, …, NETLINK_NETFILTER) fails as it does there
// (netlink_create of net/netlink/af_netlink.c). It needs root.
func WithoutNetfilter() error {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
	}
	// Of struct seccomp_data (linux/seccomp.h): nr, arch, ip, then the
	// arguments, of which both machines that this runs on have the low half first.
	const args = 16
	filter := []unix.SockFilter{
		load(0), unless(unix.SYS_SOCKET, 5),
		load(args), unless(unix.AF_NETLINK, 3),
		load(args + 2*8), unless(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	return install(filter)
}

// WithoutIPv6 makes the calling thread one on a kernel without IPv6, with all
// that it starts from now on: socket(AF_INET6) fails as it does there. It needs
// root.
func WithoutIPv6() error {
	return install([]unix.SockFilter{ // struct seccomp_data: nr, arch, ip, arguments
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_SOCKET},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.AF_INET6},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

func install(filter []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}
