package mux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Config says what a side does with what its peer sends.
type Config struct {
	// Odd: the streams that this side opens have odd numbers. The two sides differ in it.
	Odd bool
	// Streams is how many streams of each side there may be at a time. A peer that opens
	// more breaks the protocol; zero: it may open none.
	Streams int
	// Accept returns an error if the peer may not open a stream with this head, which ends
	// the connection. It doesn't block. nil: it may open none.
	Accept func(head []byte) error
	// Serve carries a stream that the peer opened, in a goroutine of its own. The stream is
	// closed when it returns.
	Serve func(*Stream)
	// Message takes a message, which is valid until it returns; its error ends the
	// connection. It doesn't block. nil: the peer may send none.
	Message func(text []byte) error
}

// Mux is one side of a connection. Its methods may be called by several goroutines.
type Mux struct {
	conn   io.ReadWriteCloser
	config Config
	slots  chan struct{} // one for each running Serve

	writing sync.Mutex // one frame at a time
	buf     []byte

	mu      sync.Mutex
	streams map[uint32]*Stream
	own     int    // how many of them this side opened
	next    uint32 // the number of the next one
	highest uint32 // the highest number that the peer used
	ended   error
	done    chan struct{}
}

// New returns a side of conn, which it closes at its end. Run must be called.
func New(conn io.ReadWriteCloser, c Config) *Mux {
	m := &Mux{conn: conn, config: c, slots: make(chan struct{}, c.Streams), buf: make([]byte, 0, headerLen+MaxData),
		streams: make(map[uint32]*Stream), next: 2, done: make(chan struct{})}
	if c.Odd {
		m.next = 1
	}
	return m
}

// Run reads frames until the connection ends, and returns why: [io.EOF] if the peer closed
// it between two frames, [ErrProtocol] if it broke the rules, the argument of [Mux.End]. All
// streams are gone then, and each Serve has returned.
func (m *Mux) Run() error {
	r := bufio.NewReaderSize(m.conn, MaxData+headerLen)
	buf := make([]byte, MaxData)
	for {
		k, id, payload, err := readFrame(r, buf)
		if err == nil {
			err = m.take(k, id, payload)
		}
		if err != nil {
			m.End(err)
			break
		}
	}
	for range cap(m.slots) {
		m.slots <- struct{}{}
	}
	return m.err()
}

// End ends the connection with all streams. The first error counts; nil is like [io.EOF].
func (m *Mux) End(err error) {
	if err == nil {
		err = io.EOF
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		return
	}
	m.ended = err
	for id, s := range m.streams {
		s.kill()
		delete(m.streams, id)
	}
	m.own = 0
	close(m.done)
	m.conn.Close()
}

// Done is closed at the end of the connection.
func (m *Mux) Done() <-chan struct{} { return m.done }

func (m *Mux) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// ErrStreams is the error of Open with as many streams open as there may be.
var ErrStreams = errors.New("too many streams are open")

// Open opens a stream with a head of 1 to MaxHead bytes.
func (m *Mux) Open(head []byte) (*Stream, error) {
	// The number and the frame in one: the peer expects rising numbers.
	m.writing.Lock()
	defer m.writing.Unlock()
	s, err := m.begin(head)
	if err != nil {
		return nil, err
	}
	return s, m.writeLocked(open, s.id, head)
}

func (m *Mux) begin(head []byte) (*Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended != nil:
		return nil, m.ended
	case m.own >= m.config.Streams:
		return nil, ErrStreams
	case m.next >= 1<<32-2:
		return nil, ErrStreams // for good: the connection has to be made again
	}
	s := newStream(m, m.next, head)
	m.streams[s.id] = s
	m.own++
	m.next += 2
	return s, nil
}

// Send sends a message of 1 to MaxMessage bytes.
func (m *Mux) Send(text []byte) error { return m.write(message, 0, text) }

func (m *Mux) write(k kind, id uint32, payload []byte) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.writeLocked(k, id, payload)
}

func (m *Mux) writeLocked(k kind, id uint32, payload []byte) error {
	if l := lengths[k]; len(payload) < l.least || len(payload) > l.most {
		panic("mux: payload of a length that the peer refuses")
	}
	m.buf = appendFrame(m.buf[:0], k, id, payload)
	if _, err := m.conn.Write(m.buf); err != nil {
		m.End(err)
		return m.err()
	}
	return nil
}

// ours reports whether this side opened the stream.
func (m *Mux) ours(id uint32) bool { return (id%2 == 1) == m.config.Odd }

// take handles a frame. It never writes on this connection: two sides that wait for each
// other's reading would wait forever.
func (m *Mux) take(k kind, id uint32, payload []byte) error {
	switch k {
	case message:
		if m.config.Message == nil {
			return breach("a message")
		}
		return m.config.Message(payload)
	case open:
		return m.opened(id, payload)
	}
	m.mu.Lock()
	s := m.streams[id]
	known := id <= m.highest
	if m.ours(id) {
		known = id < m.next
	}
	m.mu.Unlock()
	switch {
	case !known:
		return breach("a frame for stream %d, which nobody opened", id)
	case s == nil:
		return nil
	}
	switch k {
	case data:
		return s.arrived(payload)
	case credit:
		return s.credited(binary.BigEndian.Uint32(payload))
	case fin:
		return s.finished()
	}
	s.gone()
	return nil
}

func (m *Mux) opened(id uint32, head []byte) error {
	if m.ours(id) || id <= m.highest {
		return breach("it opened stream %d after %d", id, m.highest)
	}
	if m.config.Accept == nil {
		return breach("it opened a stream")
	}
	if err := m.config.Accept(head); err != nil {
		return err
	}
	m.mu.Lock()
	if m.ended != nil {
		defer m.mu.Unlock()
		return m.ended
	}
	m.highest = id
	if len(m.streams)-m.own >= m.config.Streams { // [Mux.remove] says why the count is exact
		m.mu.Unlock()
		return breach("it opened more than %d streams", m.config.Streams)
	}
	s := newStream(m, id, append([]byte(nil), head...))
	m.streams[id] = s
	m.mu.Unlock()
	// Fewer other streams than slots are alive, so one that holds the last slot is over and
	// ends soon: a peer that opens and resets has to wait.
	m.slots <- struct{}{}
	go func() {
		defer func() { <-m.slots }()
		defer s.Close()
		m.config.Serve(s)
	}()
	return nil
}

// remove forgets a stream that is over in both directions. Who opened it does so after its
// own last frame of it was written, and its peer before: so the peer never counts a stream
// that the opener doesn't.
func (m *Mux) remove(s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[s.id] != s {
		return
	}
	delete(m.streams, s.id)
	if m.ours(s.id) {
		m.own--
	}
}
