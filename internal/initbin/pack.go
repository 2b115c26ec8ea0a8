package initbin

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Pack compresses a program as it is embedded: the same bytes for the same
// program. The format is the standard library's own: another one would cost
// its package's initialisation at every start of the host programs.
func Pack(program []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()
}

// unpack is the way back, up to [MaxSize].
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxSize)
	}
	return data, r.Close()
}
