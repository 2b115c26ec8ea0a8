package toolbox

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// linger is how long a stream is read after its program has ended, while
// something in the background holds it open.
const linger = 200 * time.Millisecond

// stream carries what a program prints to where it belongs.
type stream struct {
	pipe *os.File
	to   func([]byte) error
	done chan struct{} // what the program printed is through
	eof  bool          // nothing holds the pipe; read it after done
}

// newStream makes a pipe for a program; the caller closes the writing end.
func newStream(to func([]byte) error) (*stream, *os.File, error) {
	r, w, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(r, true); err != nil {
		_ = unix.Close(r)
		_ = unix.Close(w)
		return nil, nil, err
	}
	s := &stream{pipe: os.NewFile(uintptr(r), "|"), to: to, done: make(chan struct{})}
	return s, os.NewFile(uintptr(w), "|"), nil
}

// newInput makes a pipe to write to a program; the caller closes the reading
// end, and the writing end.
func newInput() (r, w *os.File, err error) {
	rd, wr, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(wr, true); err != nil {
		_ = unix.Close(rd)
		_ = unix.Close(wr)
		return nil, nil, err
	}
	return os.NewFile(uintptr(rd), "|"), os.NewFile(uintptr(wr), "|"), nil
}

// pipe returns both ends, of which the program's must block.
func pipe() (r, w int, err error) {
	var p [2]int
	err = unix.Pipe2(p[:], unix.O_CLOEXEC)
	return p[0], p[1], err
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// carry reads until the end of the stream; when the program has ended, what it
// has left in the pipe, and then a little longer.
func (s *stream) carry() {
	defer close(s.done)
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	left := -1 // bytes that the program has left; unknown before its end
	for {
		part := buf[:]
		if left > 0 {
			part = part[:min(left, len(part))]
		}
		n, err := s.pipe.Read(part)
		if n > 0 && s.to(part[:n]) != nil {
			return // who reads it is gone
		}
		switch {
		case err == nil:
			if left > 0 {
				if left -= n; left == 0 {
					_ = s.pipe.SetReadDeadline(time.Now().Add(linger))
				}
			}
		case errors.Is(err, os.ErrDeadlineExceeded) && left < 0:
			// Woken at the program's end. What is in the pipe can be read without
			// waiting, however slowly it is taken from us.
			left = s.waiting()
			deadline := time.Time{}
			if left == 0 {
				deadline = time.Now().Add(linger)
			}
			_ = s.pipe.SetReadDeadline(deadline)
		default:
			s.eof = err == io.EOF
			return
		}
	}
}

// waiting returns how many bytes are in the pipe.
func (s *stream) waiting() (n int) {
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// finish tells the stream that the program has ended, and waits for the rest.
func (s *stream) finish() {
	select {
	case <-s.done:
		return
	default:
	}
	_ = s.pipe.SetReadDeadline(time.Unix(1, 0))
	<-s.done
}

// drain goes on reading what something in the background prints, which would
// block or end it otherwise, and throws it away; slowly, for it is nobody's.
func (s *stream) drain() {
	defer s.pipe.Close()
	_ = s.pipe.SetReadDeadline(time.Time{})
	buf := make([]byte, 16<<10)
	for {
		if _, err := s.pipe.Read(buf); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
