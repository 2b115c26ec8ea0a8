// Package sockets reads which addresses of a network namespace programs listen on, and
// which programs those are.
package sockets

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Socket is a TCP socket of this network namespace.
type Socket struct {
	At    netip.AddrPort // its local address
	UID   uint32         // the user who made it
	Inode uint64         // its number, which links of /proc/PID/fd name
	// Listens: it takes connections.
	Listens bool
}

// listens is the state TCP_LISTEN (include/net/tcp_states.h).
const listens = "0A"

// Parse reads a line of /proc/net/tcp or tcp6 (proc_net_tcp(5)); ok is false for any
// other. The address is words of 32 bits in the machine's order, which is little-endian
// wherever this runs.
func Parse(line string) (s Socket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return s, false
	}
	host, port, _ := strings.Cut(f[1], ":")
	b, err1 := hex.DecodeString(host)
	p, err2 := strconv.ParseUint(port, 16, 16)
	uid, err3 := strconv.ParseUint(f[7], 10, 32)
	inode, err4 := strconv.ParseUint(f[9], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || len(b)%4 != 0 {
		return s, false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return s, false
	}
	return Socket{netip.AddrPortFrom(a.Unmap(), uint16(p)), uint32(uid), inode, f[3] == listens}, true
}

// Owner is a process that has a socket open.
type Owner struct {
	PID     int
	Program string // its name, which it chooses itself (proc_pid_comm(5))
}
