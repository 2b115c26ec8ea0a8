package proxy

import (
	"bufio"
	"sync"
)

// Buffers return to these pools when their connection has ended in order, not by
// defer: after a panic another goroutine may still hold them. Wide ones are for TLS of
// connections that have plenty of memory: what is read at a time below it, and written at a
// time to the client. 16 of them ([buffers.For]) are 3 MiB.
var (
	readers     = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}
	writers     = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 2<<10) }}
	wideReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, wideReader) }}
	wideWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, wideWriter) }}
)

const wideReader, wideWriter = 128 << 10, 64 << 10

func putReader(br *bufio.Reader) {
	br.Reset(nil)
	if br.Size() == wideReader {
		wideReaders.Put(br)
	} else {
		readers.Put(br)
	}
}

func putWriter(w *bufio.Writer) {
	w.Reset(nil)
	wipe(w)
	if w.Size() == wideWriter {
		wideWriters.Put(w)
	} else {
		writers.Put(w)
	}
}
