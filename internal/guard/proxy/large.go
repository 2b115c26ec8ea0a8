package proxy

import (
	"errors"
	"io"

	"github.com/llmdo/workshop/internal/guard/share"
)

// smallHead is what a head or a ClientHello may have without being counted.
// Almost all have less.
const smallHead = 4 << 10

// errBusy says that too many large heads are being read at the same time.
var errBusy = errors.New("too many large requests at the same time")

// place is at most one of the places for heads and ClientHellos above smallHead:
// thousands of connections with 64 KiB each would be more than the guard's memory
// (B60). Nobody waits for one: whoever holds one may take his time. The zero value
// with large set is ready for use; it belongs to one goroutine.
type place struct {
	large *share.Room
	of    share.Place
	held  bool
}

// take takes the place unless it is held already.
func (p *place) take() bool {
	if !p.held {
		p.of, p.held = p.large.Try()
	}
	return p.held
}

// free gives it back, if it is held.
func (p *place) free() {
	if p.held {
		p.held = false
		p.of.Free()
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
