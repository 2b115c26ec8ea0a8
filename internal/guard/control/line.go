package control

import (
	"bufio"
	"errors"
	"io"
	"slices"
)

// errTooLong says that a line is longer than MaxLine.
var errTooLong = errors.New("the request is too long")

// smallLine is what every request but a policy fits into.
const smallLine = 64 << 10

// readLine reads one line, without its end. One that is longer than MaxLine is
// read to its end, not kept, and errTooLong; any other error means that there
// is no further line. large is called once, before more than smallLine is kept.
func readLine(r *bufio.Reader, large func()) ([]byte, error) {
	var out []byte
	n, big := 0, false
	for {
		part, err := r.ReadSlice('\n')
		if n += len(part); n > smallLine && !big {
			big = true
			large()
			out = slices.Grow(out, MaxLine) // once: growing would leave as much behind
		}
		switch {
		case n <= MaxLine:
			out = append(out, part...)
		default:
			out = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && n > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case n > MaxLine:
			return nil, errTooLong
		default:
			return out[:len(out)-1], nil
		}
	}
}
