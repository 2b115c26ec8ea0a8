package initimage

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// BaseArch is the architecture whose program the others are packed against:
// they share their texts, tables and data, which makes them a quarter smaller.
const BaseArch = "amd64"

// Pack compresses a program as it is embedded, with zstd: the same bytes for
// the same program. base is the program of [BaseArch] for another one, and nil
// for that itself; [unpack] needs it again.
func Pack(program, base []byte) []byte {
	o := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(32 << 20), zstd.WithEncoderConcurrency(1)}
	if len(base) > 0 {
		o = append(o, zstd.WithEncoderDictRaw(baseID(base), base))
	}
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err) // options that stand here
	}
	defer w.Close()
	return w.EncodeAll(program, nil)
}

// baseID is what a packed program says of its base.
func baseID(base []byte) uint32 {
	sum := sha256.Sum256(base)
	return binary.BigEndian.Uint32(sum[:]) | 1 // 0 is none
}

// errOtherBase says that a program was packed against another one.
var errOtherBase = errors.New("it was packed against another program: run `make build`")

// unpack is the way back, up to [MaxSize]. base is called for what the program
// was packed against, if anything.
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
