package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest pkt-line, its length included (gitprotocol-common(5)).
const maxLine = 65520

// kind is what a pkt-line is.
type kind int

const (
	data      kind = iota
	flush          // 0000 ends a section
	delimiter      // 0001 parts one, in version 2
	end            // 0002 ends a response, in version 2
)

// errMalformed begins what is wrong with the form of a stream.
var errMalformed = errors.New("not what git says")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errMalformed}, args...)...)
}

// packet is one pkt-line: its raw bytes, and behind the length its payload.
type packet struct {
	kind kind
	raw  []byte
}

func (p packet) payload() []byte {
	if p.kind != data {
		return nil
	}
	return p.raw[4:]
}

// readPacket reads one pkt-line. The end of the stream before one is [io.EOF].
func readPacket(r io.Reader) (packet, error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n > 0 {
			return packet{}, malformed("a length of %d bytes", n)
		}
		return packet{}, err
	}
	n, ok := length(head)
	switch {
	case !ok:
		return packet{}, malformed("the length %q", head[:])
	case n < 3:
		return packet{[...]kind{flush, delimiter, end}[n], head[:]}, nil
	case n < 4 || n > maxLine:
		return packet{}, malformed("a line of %d bytes", n)
	}
	var raw bytes.Buffer // grows as the bytes come
	raw.Write(head[:])
	if _, err := io.CopyN(&raw, r, int64(n-4)); errors.Is(err, io.EOF) {
		return packet{}, malformed("a line of %d bytes that ends early", n)
	} else if err != nil {
		return packet{}, err
	}
	return packet{data, raw.Bytes()}, nil
}

// length reads four hexadecimal digits.
func length(head [4]byte) (n int, ok bool) {
	for _, c := range head {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | int(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// appendPacket appends a payload as a pkt-line.
func appendPacket(b, payload []byte) []byte {
	return append(fmt.Appendf(b, "%04x", len(payload)+4), payload...)
}
