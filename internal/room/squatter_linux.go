package room

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// whoHas describes the socket that occupies a port of the room. Its process is in
// another pid namespace: `ss -ltnp` in a worker shows it.
func whoHas(port uint16) string {
	out := fmt.Sprintf("port %d is taken", port)
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if at, uid, ok := parseSocket(line); ok && at.Port() == port {
				return fmt.Sprintf("%s by a program of a worker (uid %d, at %s)", out, uid, at)
			}
		}
	}
	return out
}

// parseSocket reads the local address and the uid of a line of /proc/net/tcp or
// tcp6 (proc_net_tcp(5)); the address is words of 32 bits in the machine's order,
// which is little-endian wherever this runs.
func parseSocket(line string) (at netip.AddrPort, uid uint32, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return at, 0, false
	}
	host, port, _ := strings.Cut(f[1], ":")
	b, err1 := hex.DecodeString(host)
	p, err2 := strconv.ParseUint(port, 16, 16)
	u, err3 := strconv.ParseUint(f[7], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || len(b)%4 != 0 {
		return at, 0, false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), uint32(u), ok
}
