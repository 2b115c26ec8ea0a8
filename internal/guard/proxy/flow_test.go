package proxy

import (
	"net"
	"testing"

	"github.com/llmdo/workshop/internal/guard/policy"
)

// TestB27_RevokeCountsOnce: B27. A flow that was reset stays listed until its
// carriers have noticed; the next change doesn't count it again.
func TestB27_RevokeCountsOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pair := func() (in, out *net.TCPConn) {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); s.Close() })
		return c.(*net.TCPConn), s.(*net.TCPConn)
	}
	var f Flows
	never := func(*policy.Room) bool { return false }
	in, out := pair()
	f.Add(in, out, never)
	if n := f.Revoke(nil); n != 1 {
		t.Errorf("the first time: %d", n)
	}
	in2, out2 := pair()
	f.Add(in2, out2, never)
	if n := f.Revoke(nil); n != 1 {
		t.Errorf("the second time: %d, only one is new", n)
	}
}
