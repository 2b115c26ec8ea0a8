package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Kinds of frames, and sizes of their parts.
const (
	kindMessage = 0
	kindData    = 1
	kindCredit  = 2

	headerSize = 5
	dataHead   = 5 // call and stream
	creditBody = 9
)

// step is how much memory a length field alone gets; the rest grows with what
// really comes.
const step = 64 << 10

// dataFrame makes the frame of p in b.
func dataFrame(b []byte, id uint32, stream byte, p []byte) []byte {
	b = append(b[:0], kindData)
	b = binary.BigEndian.AppendUint32(b, uint32(dataHead+len(p)))
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, stream)
	return append(b, p...)
}

func creditFrame(id uint32, stream byte, n int) []byte {
	b := make([]byte, 0, headerSize+creditBody)
	b = append(b, kindCredit, 0, 0, 0, creditBody)
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, stream)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// read takes frames until the connection ends and says why. It waits for
// nothing but bytes, so that a cancel or the end is always seen, unless the
// other side makes calls and doesn't read that they are refused.
func (l *link) read(message func([]byte) error) error {
	br := bufio.NewReaderSize(l.rwc, 32<<10)
	for {
		head, err := br.Peek(headerSize)
		if err != nil {
			if err == io.EOF && len(head) == 0 {
				return ErrPeerClosed
			}
			return inside(err)
		}
		kind, n := head[0], binary.BigEndian.Uint32(head[1:])
		_, _ = br.Discard(headerSize)
		switch kind {
		case kindMessage:
			err = l.readMessage(br, n, message)
		case kindData:
			err = l.readData(br, n)
		case kindCredit:
			err = l.readCredit(br, n)
		default:
			err = faultf(CodeParse, "a frame is of the unknown kind %d: this isn't the protocol of version %s", kind, Version)
		}
		if err != nil {
			return err
		}
	}
}

// inside explains an end that isn't between two frames.
func inside(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the connection ended inside a frame")
	}
	return err
}

func (l *link) readMessage(br *bufio.Reader, n uint32, message func([]byte) error) error {
	if n > MaxMessage {
		return faultf(CodeInvalidRequest, "a message of %d bytes is larger than %d", n, MaxMessage)
	}
	b := make([]byte, min(n, step))
	for have := 0; ; {
		if _, err := io.ReadFull(br, b[have:]); err != nil {
			return inside(err)
		}
		if have = len(b); have == int(n) {
			return message(b)
		}
		more := make([]byte, min(4*have, int(n)))
		copy(more, b)
		b = more
	}
}

func (l *link) readData(br *bufio.Reader, n uint32) error {
	if n < dataHead || n > dataHead+MaxData {
		return faultf(CodeParse, "a data frame has a body of %d bytes, not %d to %d", n, dataHead, dataHead+MaxData)
	}
	var head [dataHead]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return inside(err)
	}
	id, stream, size := binary.BigEndian.Uint32(head[:]), head[4], int(n)-dataHead
	if !l.receives(stream) {
		return faultf(CodeInvalidRequest, "data came on stream %d, which isn't sent this way", stream)
	}
	c, err := l.find(id)
	if err != nil {
		return err
	}
	if c != nil {
		if ok, err := c.reader(stream).receive(br, size); ok || err != nil {
			return err
		}
	}
	return l.readLate(br, id, size)
}

// readLate drops what arrives for a call that has ended: at most what
// such calls had credit for.
func (l *link) readLate(br *bufio.Reader, id uint32, n int) error {
	l.mu.Lock()
	l.late -= int64(max(n, 1))
	over := l.late < 0
	l.mu.Unlock()
	if over {
		return faultf(CodeInvalidRequest, "data came for call %d, which has ended, beyond its credit", id)
	}
	if _, err := br.Discard(n); err != nil {
		return inside(err)
	}
	return nil
}

func (l *link) readCredit(br *bufio.Reader, n uint32) error {
	if n != creditBody {
		return faultf(CodeParse, "a credit frame has a body of %d bytes, not %d", n, creditBody)
	}
	var body [creditBody]byte
	if _, err := io.ReadFull(br, body[:]); err != nil {
		return inside(err)
	}
	id, stream, more := binary.BigEndian.Uint32(body[:]), body[4], binary.BigEndian.Uint32(body[5:])
	if stream > Stderr || l.receives(stream) {
		return faultf(CodeInvalidRequest, "credit came for stream %d, which isn't sent this way", stream)
	}
	c, err := l.find(id)
	if c == nil || err != nil {
		return err
	}
	if more == 0 || more > Window || !c.writer(stream).grant(int(more)) {
		return faultf(CodeInvalidRequest, "call %d got credit for %d bytes more, beyond the window of %d", id, more, Window)
	}
	return nil
}
