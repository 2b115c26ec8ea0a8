package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"
)

// message is one that is being written, with room for its frame's header.
type message struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var messages = sync.Pool{New: func() any {
	m := new(message)
	m.enc = json.NewEncoder(&m.buf)
	m.enc.SetEscapeHTML(false)
	return m
}}

func newMessage() *message {
	m := messages.Get().(*message)
	m.buf.Reset()
	m.buf.WriteString("\x00\x00\x00\x00\x00")
	m.buf.WriteString(`{"jsonrpc":"2.0"`)
	return m
}

// free gives it back; large ones are the collector's.
func (m *message) free() {
	if m.buf.Cap() <= 2<<20 {
		messages.Put(m)
	}
}

// id adds the id of a call; 0 is null.
func (m *message) id(id uint32) {
	m.buf.WriteString(`,"id":`)
	if id == 0 {
		m.buf.WriteString("null")
		return
	}
	m.buf.Write(strconv.AppendUint(m.buf.AvailableBuffer(), uint64(id), 10))
}

// method adds the name of a method, which isMethod allows.
func (m *message) method(name string) {
	m.buf.WriteString(`,"method":"`)
	m.buf.WriteString(name)
	m.buf.WriteByte('"')
}

// value adds a key and its value.
func (m *message) value(key string, v any) error {
	m.buf.WriteString(key)
	if raw, ok := v.(json.RawMessage); ok {
		return m.raw(raw)
	}
	if err := m.enc.Encode(v); err != nil {
		return err
	}
	m.buf.Truncate(m.buf.Len() - 1) // the encoder's newline
	return nil
}

// raw adds what is JSON already: the encoder would read it at a tenth of the
// speed.
func (m *message) raw(raw json.RawMessage) error {
	if raw == nil {
		m.buf.WriteString("null")
		return nil
	}
	end, err := skipValue(raw, skipSpace(raw, 0), 1)
	switch {
	case err != nil:
		return err
	case skipSpace(raw, end) != len(raw):
		return errSyntax
	case !utf8.Valid(raw):
		return errors.New("it is not valid UTF-8")
	}
	m.buf.Write(raw)
	return nil
}

// refused tells why the other side wouldn't take the message.
func (m *message) refused() error {
	b := m.buf.Bytes()[headerSize:]
	switch {
	case len(b)+64 > MaxMessage:
		return fmt.Errorf("it is larger than %d bytes", MaxMessage)
	case tooDeep(b):
		return fmt.Errorf("it is nested deeper than %d", MaxDepth)
	}
	return nil
}

// frame completes the message.
func (m *message) frame() []byte {
	b := m.buf.Bytes()
	b[0] = kindMessage
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-headerSize))
	return b
}
