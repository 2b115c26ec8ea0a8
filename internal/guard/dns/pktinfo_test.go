package dns

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestAskedAt: the answer comes from the address in the question's IP header, by
// whatever interface; without control messages as the kernel likes.
func TestAskedAt(t *testing.T) {
	six := unix.Inet6Pktinfo{Addr: [16]byte{0x20, 1, 15: 7}, Ifindex: 1}
	four := unix.Inet4Pktinfo{Ifindex: 1, Spec_dst: [4]byte{127, 0, 0, 1}, Addr: [4]byte{198, 51, 100, 7}}
	for what, c := range map[string]struct{ got, want []byte }{
		"none": {nil, nil},
		"IPv6": {unix.PktInfo6(&six), unix.PktInfo6(&unix.Inet6Pktinfo{Addr: six.Addr})},
		"IPv4": {unix.PktInfo4(&four), unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: four.Addr})},
		"else": {unix.UnixRights(1), nil},
		"half": {unix.PktInfo6(&six)[:20], nil},
	} {
		if got := askedAt(c.got); string(got) != string(c.want) || len(got) > oobSize {
			t.Errorf("%s: %x, want %x", what, got, c.want)
		}
	}
}
