package buffers

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The sum of all places is what bounds the guard's memory: as many of each size
// as its part says, never one more.
func TestFor(t *testing.T) {
	for _, of := range []int{1, 3, 10, 64, 1000, 1024} {
		count := map[Size]int{}
		for nth := 1; nth <= of; nth++ {
			count[For(nth, of)]++
		}
		at := 0
		for _, s := range sizes {
			if at += count[s.Size]; at > of/s.part {
				t.Errorf("%d places: %d are as large as %+v, want at most %d", of, at, s.Size, of/s.part)
			}
		}
		if at != of {
			t.Errorf("%d of %d places have a size", at, of)
		}
	}
}

func pair(t *testing.T, s Size) (near, dialled *net.TCPConn) {
	t.Helper()
	return pairOf(t, s, net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return s.Dialled(c) }})
}

// pairOf is a pair whose other side is dialled by d.
func pairOf(t *testing.T, s Size, d net.Dialer) (near, dialled *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Listener(l); err != nil {
		t.Fatal(err)
	}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); a.Close() })
	if err := s.Accepted(a); err != nil {
		t.Fatal(err)
	}
	return a, c.(*net.TCPConn)
}

// TestBounds: the kernel has the bounds, and keeps them while data flows.
func TestBounds(t *testing.T) {
	for _, s := range sizes {
		near, dialled := pair(t, s.Size)
		go func() {
			_, _ = s.Writer(dialled).Write(make([]byte, 4<<20))
			_ = dialled.CloseWrite()
		}()
		var got bytes.Buffer
		if err := s.Carry(&got, near); err != nil || got.Len() != 4<<20 {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
		go func() {
			_, _ = s.Writer(near).Write(make([]byte, 4<<20))
			_ = near.CloseWrite()
		}()
		if n, err := io.Copy(io.Discard, dialled); err != nil || n != 4<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
		for _, c := range []struct {
			what     string
			conn     *net.TCPConn
			opt, max int
		}{
			{"receive buffer to the worker", near, unix.SO_RCVBUF, s.Room},
			{"send buffer to the worker", near, unix.SO_SNDBUF, s.Room},
			{"receive buffer to the other side", dialled, unix.SO_RCVBUF, s.Down},
			{"send buffer to the other side", dialled, unix.SO_SNDBUF, s.Up},
		} {
			_ = control(c.conn, func(fd int) error {
				if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, c.opt); err != nil || n > c.max {
					t.Errorf("%s: %d bytes, want at most %d, %v", c.what, n, c.max, err)
				}
				return nil
			})
		}
	}
}

// TestWriterWaits: a peer that takes a lot and then doesn't read has no more taken
// for it than the buffer has room for.
func TestWriterWaits(t *testing.T) {
	near, _ := pairOf(t, Small, net.Dialer{}) // with the buffers that the kernel gives
	go func() { _, _ = Small.Writer(near).Write(make([]byte, 64<<20)) }()
	waiting := func() (n int) {
		_ = control(near, func(fd int) (err error) {
			if n, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); err != nil {
				t.Fatal(err)
			}
			return nil
		})
		return n
	}
	for before, same := 0, 0; same < 10; { // until the peer's buffer is full
		time.Sleep(10 * time.Millisecond)
		n := waiting()
		if same++; n == 0 || n != before {
			before, same = n, 0
		}
	}
	if n := waiting(); n > 2*Small.Room {
		t.Errorf("%d bytes wait, want at most %d", n, 2*Small.Room)
	}
}
