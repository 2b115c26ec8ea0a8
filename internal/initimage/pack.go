package initimage

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// BaseArch is the architecture whose program is the base of the others' compression:
// shared texts, tables and data make them a quarter smaller.
const BaseArch = "amd64"

// Pack compresses a program with zstd, reproducibly. base is the program of [BaseArch],
// and nil for that one itself; [unpack] needs it again.
func Pack(program, base []byte) []byte {
	o := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(32 << 20), zstd.WithEncoderConcurrency(1)}
	if len(base) > 0 {
		o = append(o, zstd.WithEncoderDictRaw(baseID(base), base))
	}
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err) // constant options
	}
	defer w.Close()
	return w.EncodeAll(program, nil)
}

// PackFast compresses a program that stays on this machine.
func PackFast(program []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // constant options
	}
	defer w.Close()
	return w.EncodeAll(program, nil)
}

// baseID returns the ID of a base in a packed program.
func baseID(base []byte) uint32 {
	sum := sha256.Sum256(base)
	return binary.BigEndian.Uint32(sum[:]) | 1 // 0 is none
}

// errOtherBase means that a program was packed with another base.
var errOtherBase = errors.New("packed with another base: run `make build`")

// unpack reverses Pack, up to [MaxSize]. base is called if the program was packed with a
// base.
func unpack(packed []byte, base func() ([]byte, error)) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return nil, err
	}
	o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxSize)}
	if h.DictionaryID != 0 {
		data, err := base()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errOtherBase, err)
		}
		if baseID(data) != h.DictionaryID {
			return nil, errOtherBase
		}
		o = append(o, zstd.WithDecoderDictRaw(h.DictionaryID, data))
	}
	r, err := zstd.NewReader(nil, o...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(packed, nil)
}
