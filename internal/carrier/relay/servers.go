package relay

import (
	"net"
	"net/netip"
	"sync"
)

// maxServers is how many addresses have a socket of their own at the same time.
const maxServers = 64

// servers are sockets of addresses that were asked. What is sent by a socket of every address
// is from one that the kernel chooses: gVisor ignores the IP_PKTINFO of what is sent
// (pkg/tcpip/transport/internal/network). The zero value is ready for use.
type servers struct {
	mu     sync.Mutex
	at     map[netip.Addr]*server
	asked  uint64
	closed bool
}

type server struct {
	c     *net.UDPConn
	asked uint64 // the number of the last query
}

// of returns the socket of an address. If there is none yet it is opened, beyond [maxServers]
// in place of the one that was asked least recently. Nil: it can't be.
func (s *servers) of(at netip.Addr, open func(netip.Addr) (*net.UDPConn, error)) *net.UDPConn {
	if !at.IsValid() || at.IsUnspecified() || at.IsMulticast() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at[at]
	if x == nil {
		if s.closed {
			return nil
		}
		if len(s.at) >= maxServers {
			s.evict()
		}
		c, err := open(at)
		if err != nil {
			return nil
		}
		if s.at == nil {
			s.at = map[netip.Addr]*server{}
		}
		x = &server{c: c}
		s.at[at] = x
	}
	s.asked++
	x.asked = s.asked
	return x.c
}

// evict closes the socket that was asked least recently. Who waits for its answer asks again.
func (s *servers) evict() {
	var oldest netip.Addr
	for at, x := range s.at {
		if !oldest.IsValid() || x.asked < s.at[oldest].asked {
			oldest = at
		}
	}
	s.at[oldest].c.Close()
	delete(s.at, oldest)
}

// close closes all sockets; none is opened any more.
func (s *servers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.at {
		x.c.Close()
	}
}
