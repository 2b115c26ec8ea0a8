package proxy

import (
	"errors"
	"io"
)

// smallHead is what a head or a ClientHello may have without being counted.
// Almost all have less.
const smallHead = 4 << 10

// errBusy says that too many large heads are being read at the same time.
var errBusy = errors.New("too many large requests at the same time")

// Large bounds how many heads and ClientHellos above smallHead are held at the
// same time: thousands of connections with 64 KiB each would be more than the
// guard's memory (B60). Room is the room's share, All the whole guard's. Nobody
// waits for a place: whoever holds one may take his time.
type Large struct{ Room, All chan struct{} }

func (l Large) take() bool {
	select {
	case l.Room <- struct{}{}:
	default:
		return false
	}
	select {
	case l.All <- struct{}{}:
		return true
	default:
		<-l.Room
		return false
	}
}

// place is at most one place of a Large. The zero value with large set is ready
// for use; it belongs to one goroutine.
type place struct {
	large Large
	held  bool
}

// take takes the place unless it is held already.
func (p *place) take() bool {
	p.held = p.held || p.large.take()
	return p.held
}

// free gives it back, if it is held.
func (p *place) free() {
	if p.held {
		p.held = false
		<-p.large.All
		<-p.large.Room
	}
}

// metered reads from r, above smallHead with a place only.
type metered struct {
	r io.Reader
	p *place
	n int
}

func (m *metered) Read(b []byte) (int, error) {
	if m.n >= smallHead && !m.p.take() {
		return 0, errBusy
	}
	n, err := m.r.Read(b)
	m.n += n
	return n, err
}
