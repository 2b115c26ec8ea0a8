package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// errLong is a line beyond MaxLine.
var errLong = errors.New("a message has more than 16 MiB")

// lines reads lines of a bounded length.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReaderSize(r, 64<<10)} }

// next returns a line without its end, never an empty one; errLong after the
// whole of a line that is too long, of which nothing is kept. A last line
// without an end counts.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) > 0 || err != nil {
			return line, err
		}
	}
}

func (l *lines) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxLine+1; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil
		default:
			return line, err
		}
	}
}

// wellFormed reports whether a line is text, and not nested too deep to be
// decoded. Whether it is JSON is the decoder's to say.
func wellFormed(line []byte) bool {
	if !utf8.Valid(line) {
		return false
	}
	depth, text := 0, false
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case text && b == '\\':
			i++
		case b == '"':
			text = !text
		case text:
		case b == '{' || b == '[':
			if depth++; depth > MaxDepth {
				return false
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return true
}
