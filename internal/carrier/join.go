package carrier

import (
	"io"
	"net"
	"sync"

	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Join copies between a connection and a stream until both directions ended: the end of
// one's data is passed on as such, and a reset as a reset. Both are closed then. The size
// bounds what the connection costs.
func Join(c *net.TCPConn, s *mux.Stream, size buffers.Size) {
	if size.Accepted(c) != nil {
		reset(c)
		s.Close()
		return
	}
	join(c, size.Writer(c), s, size, func() { reset(c) })
}

// JoinUnix is [Join] of a connection of this machine, whose buffers the kernel bounds. It
// has no reset: a stream's is an end.
func JoinUnix(c *net.UnixConn, s *mux.Stream, size buffers.Size) {
	join(c, c, s, size, func() { c.Close() })
}

// halfCloser is a connection each of whose directions ends by itself.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

func join(c halfCloser, to io.Writer, s *mux.Stream, size buffers.Size, reset func()) {
	defer s.Close()
	defer c.Close()
	joined := make(chan struct{})
	defer close(joined)
	go func() { // whoever waits for the connection has to hear of a reset
		select {
		case <-s.Gone():
			reset()
		case <-joined:
		}
	}()
	var up sync.WaitGroup
	up.Go(func() {
		if copyAll(s, onlyReader{c}, size) != nil {
			s.Reset()
			return
		}
		_ = s.CloseWrite()
	})
	if copyAll(onlyWriter{to}, s, size) != nil {
		s.Reset()
	} else {
		_ = c.CloseWrite()
	}
	up.Wait()
	select {
	case <-s.Gone(): // or a peer that ended its data before takes it for the end of ours
		reset()
	default:
	}
}

func copyAll(to io.Writer, from io.Reader, size buffers.Size) error {
	b := size.Get()
	defer size.Put(b)
	_, err := io.CopyBuffer(to, from, *b)
	return err
}

// Carry is [Join] with a stream that was opened for the connection, which is reset without
// one: s is nil.
func Carry(s *mux.Stream, c *net.TCPConn, size buffers.Size) {
	if s == nil {
		reset(c)
		return
	}
	Join(c, s, size)
}

// reset closes a connection so that its peer hears of a reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

// ReadDNS reads a query or a response to its end; nil: it is none, or longer than [MaxDNS].
func ReadDNS(s *mux.Stream) []byte {
	text, err := io.ReadAll(io.LimitReader(s, MaxDNS+1))
	if err != nil || len(text) == 0 || len(text) > MaxDNS {
		return nil
	}
	return text
}

// onlyReader and onlyWriter keep io.Copy from the connection's own ways, whose buffers are
// not bounded by [mux.MaxData] or need a file.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
