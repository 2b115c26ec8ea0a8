package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errTooLong says that a line is longer than MaxLine.
var errTooLong = errors.New("the request is too long")

// line reads one line of r, without what ends it; behind that there is io.EOF.
// It stores nothing, so that a line of any length costs no memory.
type line struct {
	r *bufio.Reader
	// large is called once, when the line turns out to be longer than smallLine.
	large func()
	n     int
	ended bool
	err   error // of r: nothing can be read any more
}

// smallLine is what every request but a policy fits into.
const smallLine = 64 << 10

// Read implements [io.Reader].
func (l *line) Read(b []byte) (int, error) {
	if l.n > MaxLine {
		return 0, errTooLong
	}
	return l.read(b)
}

func (l *line) read(b []byte) (int, error) {
	if l.ended || len(b) == 0 {
		return 0, io.EOF
	}
	if _, err := l.r.Peek(1); err != nil {
		l.ended, l.err = true, err
		return 0, io.ErrUnexpectedEOF
	}
	have, _ := l.r.Peek(min(len(b), l.r.Buffered()))
	n := len(have)
	if i := bytes.IndexByte(have, '\n'); i >= 0 {
		n, l.ended = i, true
	}
	copy(b, have[:n])
	_, _ = l.r.Discard(n)
	if l.ended {
		_, _ = l.r.Discard(1)
	}
	if small := l.n <= smallLine; small && l.n+n > smallLine && l.large != nil {
		l.large()
	}
	l.n += n
	if n == 0 && l.ended {
		return 0, io.EOF
	}
	return n, nil
}

// drain reads the rest of the line and returns why there is no other one.
func (l *line) drain() error {
	b := make([]byte, 4<<10)
	for {
		if _, err := l.read(b); err != nil {
			return l.err
		}
	}
}
