package carrier

import (
	"io"
	"net"
	"sync"

	"github.com/llmdo/workshop/internal/carrier/mux"
)

// Join copies between a connection and a stream until both directions ended: the end of
// one's data is passed on as such, and a reset as a reset. Both are closed then.
func Join(c *net.TCPConn, s *mux.Stream) {
	defer s.Close()
	defer c.Close()
	joined := make(chan struct{})
	defer close(joined)
	go func() { // whoever waits for the connection has to hear of a reset
		select {
		case <-s.Gone():
			_ = c.SetLinger(0)
			c.Close()
		case <-joined:
		}
	}()
	var up sync.WaitGroup
	up.Go(func() {
		if _, err := io.Copy(s, onlyReader{c}); err != nil {
			s.Reset()
			return
		}
		_ = s.CloseWrite()
	})
	if _, err := io.Copy(onlyWriter{c}, s); err != nil {
		s.Reset()
	} else {
		_ = c.CloseWrite()
	}
	up.Wait()
}

// onlyReader and onlyWriter keep io.Copy from the connection's own ways, whose buffers are
// not bounded by [mux.MaxData] or need a file.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
