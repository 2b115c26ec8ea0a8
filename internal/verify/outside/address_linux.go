package outside

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// address reads "0100007F:1F90": words of 32 bits in the machine's byte order, which is
// little-endian on all that we build for, and the port.
func address(text string) (string, bool) {
	host, portText, ok := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	port, err2 := strconv.ParseUint(portText, 16, 16)
	if !ok || err != nil || err2 != nil || len(b)%4 != 0 {
		return "", false
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)).String(), ok
}
