package mux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of a frame's payload and of what is kept of a stream, in bytes.
const (
	MaxHead    = 64
	MaxData    = 16 << 10
	MaxMessage = 4 << 10
	Window     = 32 << 10
)

type kind byte

const (
	open kind = 1 + iota
	data
	fin
	reset
	credit
	message
)

// lengths are the shortest and the longest payload of each kind.
var lengths = [...]struct{ least, most int }{
	open: {1, MaxHead}, data: {1, MaxData}, fin: {}, reset: {}, credit: {4, 4}, message: {1, MaxMessage},
}

const headerLen = 7

// ErrProtocol is the error of a connection whose peer broke the rules of the package.
var ErrProtocol = errors.New("the peer broke the protocol")

func breach(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// appendFrame appends a frame to b.
func appendFrame(b []byte, k kind, id uint32, payload []byte) []byte {
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, payload...)
}

// readFrame reads a frame; the payload is in buf, whose length is MaxData.
func readFrame(r io.Reader, buf []byte) (k kind, id uint32, payload []byte, err error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, nil, err
	}
	k, id = kind(h[0]), binary.BigEndian.Uint32(h[1:])
	n := int(binary.BigEndian.Uint16(h[5:]))
	if k < open || k > message {
		return 0, 0, nil, breach("a frame of kind %d", k)
	}
	if l := lengths[k]; n < l.least || n > l.most {
		return 0, 0, nil, breach("a frame of kind %d with %d bytes", k, n)
	}
	if (k == message) != (id == 0) {
		return 0, 0, nil, breach("a frame of kind %d for stream %d", k, id)
	}
	_, err = io.ReadFull(r, buf[:n])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return k, id, buf[:n], err
}
