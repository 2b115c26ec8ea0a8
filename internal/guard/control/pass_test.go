package control

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a socket pair.
func pair(t *testing.T, typ int) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// taking serves what is passed through the socket that it returns.
func taking(t *testing.T) (sock *net.UnixConn, ended chan struct{}) {
	t.Helper()
	ours, guards := pair(t, unix.SOCK_SEQPACKET)
	fd, err := unix.Dup(int(guards.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	guards.Close()
	taker, err := Inherited(fd)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() { defer close(ended); NewServer(echo).Take(t.Context(), taker) }()
	c, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	t.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn), ended
}

// TestPass: connections that are handed over are served, several at a time, also
// those that outlive the socket they came by.
func TestPass(t *testing.T) {
	sock, ended := taking(t)
	var clients []*Client
	for range 3 {
		mine, its := pair(t, unix.SOCK_STREAM)
		if err := Pass(sock, its); err != nil {
			t.Fatal(err)
		}
		its.Close()
		c, err := net.FileConn(mine)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		clients = append(clients, NewClient(c))
	}
	ask := func() {
		t.Helper()
		for i, c := range clients {
			var r Request
			if err := c.Do(Request{Op: OpExplain, Host: "a.example", Port: 443}, &r); err != nil || r.Host != "a.example" {
				t.Errorf("connection %d: %+v %v", i, r, err)
			}
		}
	}
	ask()
	sock.Close()
	<-ended
	ask()
}

// TestPassGarbage: what is no connection is thrown away with its descriptors,
// and the next message is served.
func TestPassGarbage(t *testing.T) {
	sock, _ := taking(t)
	_, stream := pair(t, unix.SOCK_STREAM)
	_, datagram := pair(t, unix.SOCK_DGRAM)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, m := range []struct {
		text string
		fds  []*os.File
	}{
		{"c", nil}, {"x", []*os.File{stream}}, {"cc", []*os.File{stream}}, {"c", []*os.File{stream, stream}}, {"c", []*os.File{datagram}}, {"c", []*os.File{w}},
		{"c", []*os.File{w, w, w, w, w, w, w, w}},
	} {
		var fds []int
		for _, f := range m.fds {
			fds = append(fds, int(f.Fd()))
		}
		if _, _, err := sock.WriteMsgUnix([]byte(m.text), unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := r.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("a descriptor is still open: %v", err)
	}
	mine, its := pair(t, unix.SOCK_STREAM)
	if err := Pass(sock, its); err != nil {
		t.Fatal(err)
	}
	c, err := net.FileConn(mine)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	var answer Request
	if err := NewClient(c).Do(Request{Op: OpState}, &answer); err != nil || answer.Op != OpState {
		t.Errorf("after the garbage: %+v %v", answer, err)
	}
}

// TestInherited: a descriptor that is something else is refused.
func TestInherited(t *testing.T) {
	_, stream := pair(t, unix.SOCK_STREAM)
	for _, fd := range []int{int(stream.Fd()), 1 << 20} {
		if c, err := Inherited(fd); err == nil {
			c.Close()
			t.Errorf("descriptor %d was taken", fd)
		}
	}
	a, _ := pair(t, unix.SOCK_SEQPACKET)
	fd, _ := unix.Dup(int(a.Fd()))
	c, err := Inherited(fd)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); NewServer(echo).Take(ctx, c) }()
	cancel()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("it goes on after its end")
	}
}
