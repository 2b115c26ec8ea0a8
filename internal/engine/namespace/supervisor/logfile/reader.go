package logfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// All is Options.Tail for all kept entries.
const All = -1

// Options selects entries of a log.
type Options struct {
	// Tail is the number of last entries; All: every one. Zero, for none, is
	// useful with Follow.
	Tail int
	// Since leaves out older entries; the zero value is the beginning.
	Since time.Time
	// Follow waits for more, across rotations and restarts, until the context ends
	// or the log is removed.
	Follow bool
}

// every is how often a following reader polls.
const every = 20 * time.Millisecond

// Read calls emit for the entries of the log in dir, the oldest first. It returns
// emit's error, or why the log can't be read (fs.ErrNotExist: there is none), and nil
// at the end of the context. It skips damaged lines.
func Read(ctx context.Context, dir string, o Options, emit func(Entry) error) error {
	r := &reader{ctx: ctx, o: o, emit: emit, dir: dir}
	defer r.close()
	list, err := numbers(dir)
	if err != nil {
		return err
	}
	if o.Tail != All {
		if list, err = r.tail(list); err != nil {
			return err
		}
	}
	for _, n := range list {
		if err := r.read(n); err != nil {
			return err
		}
	}
	for o.Follow && ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if err := r.more(); err != nil {
			return err
		}
		if r.gone {
			return nil
		}
	}
	return nil
}

// reader has read file n up to its last complete line.
type reader struct {
	ctx  context.Context
	o    Options
	emit func(Entry) error
	dir  string

	n    int
	skip int64 // offset at which the tail begins
	file *os.File
	buf  *bufio.Reader
	part []byte
	long bool // the current line is longer than any valid one
	gone bool
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// read reads file n, unless it has been removed.
func (r *reader) read(n int) error {
	skip := r.skip
	r.skip = 0
	f, err := os.Open(fileName(r.dir, n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := f.Seek(skip, io.SeekStart); err != nil {
		f.Close()
		return err
	}
	r.close()
	r.file, r.n, r.part, r.long = f, n, nil, false
	r.buf = bufio.NewReaderSize(f, 64<<10)
	return r.lines()
}

// lines emits the complete lines of the current file.
func (r *reader) lines() error {
	for r.ctx.Err() == nil {
		b, err := r.buf.ReadSlice('\n')
		if len(r.part)+len(b) > maxLine {
			r.part, r.long = nil, true
		}
		if !r.long {
			r.part = append(r.part, b...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		var e Entry
		ok := !r.long && json.Unmarshal(r.part, &e) == nil && e.Stream != ""
		r.part, r.long = r.part[:0], false
		if !ok || e.Time.Before(r.o.Since) {
			continue
		}
		if err := r.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// more reads what was written since the last call.
func (r *reader) more() error {
	list, err := numbers(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.gone = true
		list, err = nil, nil
	}
	if err != nil {
		return err
	}
	// Newer files were created after the last line of this one.
	if r.file != nil {
		if err := r.lines(); err != nil {
			return err
		}
	}
	for _, n := range list {
		if n > r.n {
			if err := r.read(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// tail finds where the last entries begin, and skips the files before.
func (r *reader) tail(list []int) ([]int, error) {
	left := r.o.Tail
	for i, n := range slices.Backward(list) {
		f, err := os.Open(fileName(r.dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			return list[i+1:], nil // so are the older ones
		}
		if err != nil {
			return nil, err
		}
		at, found, err := back(f, left)
		f.Close()
		if err != nil {
			return nil, err
		}
		if left -= found; left <= 0 {
			r.skip = at
			return list[i:], nil
		}
	}
	return list, nil
}

// back finds the offset of the last want complete lines, or of all if there are
// fewer.
func back(f *os.File, want int) (at int64, found int, err error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	buf := make([]byte, 64<<10)
	// at is where the line begins whose end was seen last; beyond the last end
	// there is half a line at most.
	at = -1
	for end > 0 {
		n := min(int64(len(buf)), end)
		if _, err := f.ReadAt(buf[:n], end-n); err != nil {
			return 0, 0, err
		}
		for chunk := buf[:n]; ; {
			i := bytes.LastIndexByte(chunk, '\n')
			if i < 0 {
				break
			}
			at = end - n + int64(i) + 1
			if found == want {
				return at, found, nil
			}
			found++
			chunk = chunk[:i]
		}
		end -= n
	}
	return 0, found, nil
}
