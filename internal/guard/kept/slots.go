package kept

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/llmdo/workshop/internal/room/handover"
)

// A file has two slots. A write goes to the older one, so that a guard that is
// killed at any moment leaves the old state or the new one. A slot is a header
// and the payload; the checksum detects torn writes only: a holder of the
// descriptor can write anything.
//
//	0  magic       8 bytes, the last of which is the version
//	8  generation  uint64, little endian as all
//	16 length      uint32, of the payload
//	20 checksum    uint32, CRC-32C of the 20 bytes before and the payload
const (
	slotSize   = handover.KeptSize / 2
	headerSize = 24
	maxPayload = slotSize - headerSize

	magic   = "wskept\x00"
	version = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// store is the file, as reader and writer of its two slots.
type store interface {
	io.ReaderAt
	io.WriterAt
}

// slots reads and writes generations of a payload.
type slots struct {
	store
	generation uint64 // last one written or read
	next       int    // slot of the next one
}

// write makes a state the newest generation.
func (s *slots) write(state State) error {
	b, err := state.encode()
	if err == nil {
		err = s.put(b)
	}
	if err != nil {
		return fmt.Errorf("record live denies and spent budgets: %w", err)
	}
	return nil
}

func (s *slots) put(b []byte) error {
	at := int64(s.next) * slotSize
	header := make([]byte, headerSize)
	if _, err := s.WriteAt(header, at); err != nil { // not valid while it is written
		return err
	}
	if _, err := s.WriteAt(b, at+headerSize); err != nil {
		return err
	}
	copy(header, magic)
	header[len(magic)] = version
	binary.LittleEndian.PutUint64(header[8:], s.generation+1)
	binary.LittleEndian.PutUint32(header[16:], uint32(len(b)))
	binary.LittleEndian.PutUint32(header[20:], checksum(header, b))
	if _, err := s.WriteAt(header, at); err != nil {
		return err
	}
	s.generation++
	s.next = 1 - s.next
	return nil
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:20], castagnoli), castagnoli, payload)
}

// errTorn means that no slot holds a complete state.
var errTorn = errors.New("no slot has a valid checksum")

// read returns the newest generation; the next write follows it.
func (s *slots) read() (State, error) {
	b, err := s.newest()
	if err != nil {
		return State{}, err
	}
	return decode(b)
}

func (s *slots) newest() (newest []byte, err error) {
	for i := range 2 {
		generation, b, err := s.slot(i)
		switch {
		case errors.Is(err, errTorn):
		case err != nil:
			return nil, err
		case newest == nil || generation > s.generation:
			newest, s.generation, s.next = b, generation, 1-i
		}
	}
	if newest == nil {
		return nil, errTorn
	}
	return newest, nil
}

func (s *slots) slot(i int) (generation uint64, payload []byte, err error) {
	b := make([]byte, slotSize)
	if _, err := s.ReadAt(b, int64(i)*slotSize); err != nil {
		return 0, nil, err
	}
	header, payload := b[:headerSize], b[headerSize:]
	length := binary.LittleEndian.Uint32(header[16:])
	if string(header[:len(magic)]) != magic || length > maxPayload {
		return 0, nil, errTorn
	}
	payload = payload[:length]
	if binary.LittleEndian.Uint32(header[20:]) != checksum(header, payload) {
		return 0, nil, errTorn
	}
	if v := header[len(magic)]; v != version {
		return 0, nil, fmt.Errorf("version %d, want %d", v, version)
	}
	return binary.LittleEndian.Uint64(header[8:]), payload, nil
}
