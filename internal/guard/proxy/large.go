package proxy

import (
	"errors"
	"io"

	"github.com/llmdo/workshop/internal/guard/share"
)

// smallHead is the size up to which a head or a ClientHello needs no place. Almost
// all are smaller.
const smallHead = 4 << 10

// errBusy means that too many large heads are being read at the same time.
var errBusy = errors.New("too many large requests at the same time")

// place holds at most one of the places for heads and ClientHellos above
// smallHead: thousands of connections with 64 KiB each would exceed the guard's
// memory (B60). Nobody waits for a place, as its holder may be slow. The zero
// value with large set is ready for use by one goroutine.
type place struct {
	large *share.Room
	of    share.Place
	held  bool
}

// take takes a place unless one is already held.
func (p *place) take() bool {
	if !p.held {
		p.of, p.held = p.large.Try()
	}
	return p.held
}

// free frees the place if it is held.
func (p *place) free() {
	if p.held {
		p.held = false
		p.of.Free()
	}
}

// metered reads from r; beyond smallHead it requires a place.
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
