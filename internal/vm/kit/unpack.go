package kit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"
)

// maxWindow is the largest dictionary of a format, in bytes: kernels have 128 MiB at most
// (scripts/xz_wrap.sh and zstd -22 of Linux).
const maxWindow = 128 << 20

// formats are those that Linux compresses kernels and modules by, with their first bytes.
var formats = []struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error) // nil: not supported
}{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"xz", "\xfd7zXZ\x00", func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, maxWindow) }},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}},
	{"lz4", "\x02\x21\x4c\x18", func(r io.Reader) (io.Reader, error) { return lz4.NewReader(r), nil }},
	{"bzip2", "BZh", nil},
	{"lzma", "\x5d\x00\x00", nil},
	{"lzo", "\x89LZO", nil},
}

// errFormat means that data is in no format of a compression.
var errFormat = errors.New("not compressed by gzip, xz, zstd or lz4")

// unpack decompresses data, whose first bytes tell the format. More than limit bytes are an
// error.
func unpack(data []byte, limit int) ([]byte, error) {
	for _, f := range formats {
		if !bytes.HasPrefix(data, []byte(f.magic)) {
			continue
		}
		if f.open == nil {
			return nil, fmt.Errorf("compressed by %s: %w", f.name, errFormat)
		}
		out, err := read(f.open, data, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		return out, nil
	}
	return nil, errFormat
}

func read(open func(io.Reader) (io.Reader, error), data []byte, limit int) ([]byte, error) {
	r, err := open(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if c, ok := r.(*zstd.Decoder); ok {
		defer c.Close()
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(out) > limit {
		err = fmt.Errorf("unpacked more than %d bytes", limit)
	}
	return out, err
}
