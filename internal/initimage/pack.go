package initimage

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
)

// Pack compresses a program with zstd, reproducibly; [unpack] reverses it.
func Pack(program []byte) []byte {
	return encode(program, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(32<<20))
}

// PackFast compresses a program that stays on this machine.
func PackFast(program []byte) []byte {
	return encode(program, zstd.WithEncoderLevel(zstd.SpeedFastest))
}

func encode(program []byte, o ...zstd.EOption) []byte {
	w, err := zstd.NewWriter(nil, append(o, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		panic(err) // constant options
	}
	defer w.Close()
	program = bytes.Clone(program)
	absolute(program)
	return w.EncodeAll(program, nil)
}

// unpack reverses Pack, up to [MaxSize].
func unpack(packed []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxSize))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	program, err := r.DecodeAll(packed, nil)
	relative(program)
	return program, err
}
