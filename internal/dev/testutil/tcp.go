package testutil

import (
	"net"
	"testing"
	"time"
)

// TCPPair returns both ends of a connection: near was accepted, and far, which
// dialled, has a deadline in 20 seconds. The test's end closes them.
func TCPPair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	near, err = l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	_ = far.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}
