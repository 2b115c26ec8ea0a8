package control

import (
	"bufio"
	"errors"
	"io"
	"slices"
)

// errTooLong means that a line is longer than MaxLine.
var errTooLong = errors.New("the request is too long")

// smallLine bounds every request without a policy.
const smallLine = 64 << 10

// readLine reads one line, without its end. A line longer than MaxLine is read to
// its end and discarded, with errTooLong; after any other error there is no further
// line. large is called once, before more than smallLine is buffered.
func readLine(r *bufio.Reader, large func()) ([]byte, error) {
	var out []byte
	n, big := 0, false
	for {
		part, err := r.ReadSlice('\n')
		if n += len(part); n > smallLine && !big {
			big = true
			large()
			out = slices.Grow(out, MaxLine) // once: gradual growth would leave as much garbage
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
