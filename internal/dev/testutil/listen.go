package testutil

import (
	"net"
	"testing"
)

// ListenTwice listens at one port by TCP and UDP. A port that is free for one may be taken for
// the other.
func ListenTwice(t testing.TB) (net.Listener, net.PacketConn) {
	t.Helper()
	for try := 0; ; try++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		pc, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, pc
		}
		l.Close()
		if try == 20 {
			t.Fatal(err)
		}
	}
}
