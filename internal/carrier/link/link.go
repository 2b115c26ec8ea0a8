// Package link keeps a carrier's connection: one that ended is made again, and whoever wants
// a stream meanwhile waits for the next one.
package link

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/carrier/mux"
)

// Options of a link.
type Options struct {
	// Dial connects to the other side, and is called again when the connection ended.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Mux is this side of each connection.
	Mux mux.Config
	// Hello is a message that begins each connection; nil: none.
	Hello []byte
}

// Again is the pause before the next try to connect.
const Again = 100 * time.Millisecond

// Link connects while [Link.Run] runs.
type Link struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	cond sync.Cond // of mu: now changed, or the link ends
	now  *mux.Mux  // nil: there is none
}

// New returns a link that isn't connected yet.
func New(o Options) *Link {
	l := &Link{o: o}
	l.cond.L = &l.mu
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Run keeps a connection until [Link.Close]: what it carried ends with it.
func (l *Link) Run() {
	for l.ctx.Err() == nil {
		conn, err := l.o.Dial(l.ctx)
		if err == nil {
			m := mux.New(conn, l.o.Mux)
			l.set(m)
			if l.o.Hello != nil {
				go m.Send(l.o.Hello) // Run ends with what fails
			}
			_ = m.Run()
			l.set(nil)
		}
		select {
		case <-time.After(Again):
		case <-l.ctx.Done():
		}
	}
}

// Close ends the link with all that it carries.
func (l *Link) Close() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		l.now.End(nil)
	}
	l.cond.Broadcast()
}

func (l *Link) set(m *mux.Mux) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = m
	if m != nil && l.ctx.Err() != nil {
		m.End(nil)
	}
	l.cond.Broadcast()
}

// Current waits for a connection that hasn't ended; nil: the link ends.
func (l *Link) Current() *mux.Mux {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.now == nil || isEnded(l.now)) && l.ctx.Err() == nil {
		l.cond.Wait() // Run sets the next one, or none, after the end of one
	}
	if l.ctx.Err() != nil {
		return nil
	}
	return l.now
}

func isEnded(m *mux.Mux) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// Open opens a stream on the connection, or on the next one if it ends meanwhile; nil: there
// is no place, or the link ends.
func (l *Link) Open(head []byte) *mux.Stream {
	for {
		m := l.Current()
		if m == nil {
			return nil
		}
		s, err := m.Open(head)
		if err == nil || !isEnded(m) {
			return s
		}
	}
}
