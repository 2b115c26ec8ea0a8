package logfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Writer appends to a service's log. It is safe for concurrent use.
type Writer struct {
	dir      string
	maxSize  int64
	maxFiles int

	mu      sync.Mutex
	file    *os.File // nil after a failed write or open
	n       int      // its number
	size    int64
	waiting []byte // entries that aren't written yet, of this file
}

// Open opens the log in dir, which it creates if necessary, mode 0700, and continues
// its newest file. maxSize is the size of one file in bytes; maxFiles includes the
// current one. Both must be positive.
func Open(dir string, maxSize int64, maxFiles int) (*Writer, error) {
	if maxSize <= 0 || maxFiles <= 0 {
		return nil, fmt.Errorf("a log of %d files of %d bytes can't keep anything", maxFiles, maxSize)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	list, err := numbers(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, maxSize: maxSize, maxFiles: maxFiles, n: 1}
	if len(list) > 0 {
		w.n = list[len(list)-1]
	}
	return w, w.open()
}

// open opens the newest file. A killed supervisor may have left an incomplete line
// at its end.
func (w *Writer) open() error {
	f, err := os.OpenFile(fileName(w.dir, w.n), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size > 0 {
		var last [1]byte
		if _, err = f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			_, err = f.Write([]byte{'\n'})
			size++
		}
	}
	if err != nil {
		f.Close()
		return err
	}
	w.file, w.size = f, size
	w.removeOld()
	return nil
}

// removeOld removes the files beyond maxFiles.
func (w *Writer) removeOld() {
	list, err := numbers(w.dir)
	if err != nil {
		return
	}
	for len(list) > w.maxFiles {
		_ = os.Remove(fileName(w.dir, list[0]))
		list = list[1:]
	}
}

// buffers hold pending entries: most logs are silent most of the time.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// batch is about how many bytes are written at once.
const batch = 64 << 10

// Write appends one entry of at most MaxText bytes and returns its length in the
// file. It may stay in memory until Flush. After an error, such as a full disk,
// pending entries are lost, and the next call tries again.
func (w *Writer) Write(at time.Time, stream string, text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = *buffers.Get().(*[]byte)
	}
	before := len(w.waiting)
	w.waiting = appendEntry(w.waiting, at, stream, text)
	n := len(w.waiting) - before
	if w.size+int64(len(w.waiting)) > w.maxSize && w.size+int64(before) > 0 {
		// The entry begins the next file.
		entry := slices.Clone(w.waiting[before:])
		w.waiting = w.waiting[:before]
		err := w.flush()
		w.waiting = append(w.waiting[:0], entry...)
		if err == nil {
			err = w.rotate()
		}
		if err != nil {
			return n, err
		}
	}
	if len(w.waiting) >= batch {
		return n, w.flush()
	}
	return n, nil
}

// Flush writes pending entries.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) flush() error {
	if len(w.waiting) == 0 {
		return nil
	}
	defer func() {
		buf := w.waiting[:0]
		buffers.Put(&buf)
		w.waiting = nil
	}()
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	n, err := w.file.Write(w.waiting)
	w.size += int64(n)
	if err != nil {
		w.file.Close() // the next open repairs it
		w.file = nil
	}
	return err
}

// rotate begins the next file.
func (w *Writer) rotate() error {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
	w.n++
	w.size = 0
	return w.open()
}

func appendEntry(b []byte, at time.Time, stream string, text []byte) []byte {
	b = append(b, `{"time":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","stream":"`...)
	b = append(b, stream...)
	b = append(b, `","text":`...)
	return append(appendText(b, text), "}\n"...)
}

// appendText is json.Marshal with a fast path for common lines.
func appendText(b, text []byte) []byte {
	line, end := bytes.CutSuffix(text, []byte{'\n'})
	for _, c := range line {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(string(text))
			if err != nil {
				quoted = []byte(`""`) // marshalling a string never fails
			}
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), line...)
	if end {
		b = append(b, `\n`...)
	}
	return append(b, '"')
}

// Close ends the writing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flush()
	w.waiting = nil
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
		w.file = nil
	}
	return err
}
