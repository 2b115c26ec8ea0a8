// Package buffers bounds the memory of each connection of the guard or a carrier, including
// the kernel's buffers: the first connections get plenty, later ones less, so that
// all together stay within the program's memory even if no peer reads (B60).
package buffers

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Size has the bounds of one connection, in bytes as counted by the kernel: about
// half of them are payload.
type Size struct {
	Room     int // each of the two buffers of the socket to the worker
	Down, Up int // those of the socket to the upstream
	Chunk    int // bytes copied at a time
	// Splice: use splice(2). A socket whose buffer holds less than two loopback
	// packets of 64 KiB would stall for 200 ms each time.
	Splice bool
}

// Small is the size of connections without a place, and of sockets that aren't
// accepted yet.
var Small = Size{Room: 8 << 10, Down: 8 << 10, Up: 8 << 10, Chunk: 4 << 10}

// sizes depends on how many places are taken: each entry gets at most 1/part of
// them. With all 2,048 places in their worst state the kernel's buffers are
//
//	   16 x 2.9 MiB + 112 x 448 KiB + 384 x 112 KiB + 1,536 x 32 KiB
//	=  47 MiB       + 49 MiB        + 42 MiB        + 48 MiB         = 186 MiB
//
// and two sockets 8 KiB, a body both ways 45 KiB of heap and stacks: 105 MiB.
// 64 large heads are 16 MiB, an idle guard is 7 MiB, and the lines of two policies
// are 78 MiB: 392 MiB at most, below 80 % of firewall.GuardMemory. The benchmark Memory of internal/guard measures it.
var sizes = []struct {
	part int
	Size
}{
	{128, Size{Room: 256 << 10, Down: 2 << 20, Up: 416 << 10, Chunk: 32 << 10, Splice: true}},
	{16, Size{Room: 64 << 10, Down: 256 << 10, Up: 64 << 10, Chunk: 16 << 10}},
	{4, Size{Room: 16 << 10, Down: 64 << 10, Up: 16 << 10, Chunk: 8 << 10}},
	{1, Small},
}

// For returns the size of the nth of of places.
func For(nth, of int) Size {
	for _, s := range sizes {
		if nth*s.part <= of {
			return s.Size
		}
	}
	return Small
}

type key struct{}

// With returns a context with the size of its connection.
func With(ctx context.Context, s Size) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the size in a context, Small if there is none.
func Of(ctx context.Context) Size {
	if s, ok := ctx.Value(key{}).(Size); ok {
		return s
	}
	return Small
}

// Listener bounds the sockets of a listener until they are accepted.
func Listener(l *net.TCPListener) error {
	return control(l, func(fd int) error { return bound(fd, Small.Room, Small.Room) })
}

// Accepted sets the bounds of the socket to the worker.
func (s Size) Accepted(c *net.TCPConn) error {
	return control(c, func(fd int) error {
		if err := bound(fd, s.Room, s.Room); err != nil {
			return err
		}
		// The listener's bound limits the window until it is set again.
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, s.Room)
	})
}

// Dialled sets the bounds of the socket to the upstream, before it connects.
func (s Size) Dialled(c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = s.dialled(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

func (s Size) dialled(fd int) error {
	// SO_RCVBUF gives no more than twice net.core.rmem_max, 416 KiB mostly, which is
	// little for distant peers. SO_RCVLOWAT makes the buffer as large as
	// tcp_rmem allows, without a privilege; then it is locked (Linux 5.14).
	const receiveLocked = 2 // SOCK_RCVBUF_LOCK
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, s.Down/2) == nil &&
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1) == nil {
		if now, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil && now <= s.Down && s.Down >= 416<<10 &&
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, receiveLocked) == nil {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, s.Up/2)
		}
	}
	return bound(fd, s.Down, s.Up)
}

// bound sets both buffers of a socket. The kernel doubles the values (socket(7)),
// and no longer changes them itself.
func bound(fd, receive, send int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receive/2); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, send/2)
}

func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	if cerr != nil {
		return cerr
	}
	return err
}

var pools = func() map[int]*sync.Pool {
	all := map[int]*sync.Pool{}
	for _, s := range sizes {
		all[s.Chunk] = &sync.Pool{New: func() any { b := make([]byte, s.Chunk); return &b }}
	}
	return all
}()

// Get returns a buffer for copying.
func (s Size) Get() *[]byte { return pools[s.Chunk].Get().(*[]byte) }

// Put returns a buffer of Get to its pool.
func (s Size) Put(b *[]byte) { pools[s.Chunk].Put(b) }

// Inside sets the bounds of a socket to a server in the room, before it connects.
func (s Size) Inside(c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = bound(int(fd), s.Room, s.Room) }); cerr != nil {
		return cerr
	}
	return err
}

// Writer returns a writer to c that writes as much as the socket's buffer has room
// for, then waits. In one write the kernel would take a whole packet more, 64 KiB,
// whatever the buffer's bound is (tcp_sendmsg).
func (s Size) Writer(c *net.TCPConn) io.Writer {
	if s.Splice {
		return c
	}
	return roomyWriter{c, s.Chunk}
}

type roomyWriter struct {
	c     *net.TCPConn
	chunk int
}

func (w roomyWriter) Write(b []byte) (n int, err error) {
	raw, err := w.c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var werr error
	err = raw.Write(func(fd uintptr) bool {
		for n < len(b) {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if k, err := unix.Poll(poll, 0); k == 0 || err == unix.EINTR {
				return false
			}
			k, err := unix.Write(int(fd), b[n:min(len(b), n+w.chunk)])
			switch {
			case err == unix.EAGAIN:
				return false
			case err == unix.EINTR:
			case err != nil:
				werr = err
				return true
			default:
				n += k
			}
		}
		return true
	})
	return n, errors.Join(err, werr)
}

// Turn lets other connections have the CPU now and then: one whose buffer is never empty would
// keep it for 10 ms. Yielding wakes an idle thread, so it isn't done for each read. The zero
// value is a turn that begins.
type Turn struct{ left int }

// A turn is about 100 µs of copying; a read counts as the smallest chunk at least.
const turn, turnRead = 256 << 10, 4 << 10

// Took counts a read of n bytes, and yields when the turn is over.
func (t *Turn) Took(n int) {
	if t.left -= max(n, turnRead); t.left <= 0 {
		t.left = turn
		runtime.Gosched()
	}
}

// Carry copies src until EOF. It holds a buffer only while there is something to
// copy.
func (s Size) Carry(dst io.Writer, src *net.TCPConn) error {
	raw, err := src.SyscallConn()
	if err != nil {
		return err
	}
	var turn Turn
	for {
		var buf *[]byte
		var n int
		var rerr error
		err := raw.Read(func(fd uintptr) bool {
			buf = s.Get()
			for {
				if n, rerr = unix.Read(int(fd), *buf); rerr != unix.EINTR {
					break
				}
			}
			if rerr == unix.EAGAIN {
				s.Put(buf)
				return false
			}
			return true
		})
		if err != nil {
			return err
		}
		turn.Took(n)
		if n > 0 {
			_, err = dst.Write((*buf)[:n])
		}
		s.Put(buf)
		if rerr != nil || err != nil || n == 0 {
			return errors.Join(rerr, err)
		}
	}
}

// Copy copies src to dst with a buffer of the size, even if either has ReadFrom or
// WriteTo: those of bufio read into a buffer that others use.
func (s Size) Copy(dst io.Writer, src io.Reader) (int64, error) {
	buf := s.Get()
	n, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, *buf)
	s.Put(buf)
	return n, err
}
