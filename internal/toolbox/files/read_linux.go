package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// chunk is how much is read between two looks at the context.
const chunk = 64 << 10

// Read is read_file. Of a file that is being changed it returns what it finds.
func Read(ctx context.Context, a tool.ReadFileArgs) (*tool.ReadFileResult, error) {
	most, err := within("max_bytes", a.MaxBytes, tool.DefaultReadBytes, tool.MaxReadBytes)
	if err != nil {
		return nil, err
	}
	switch {
	case a.FirstLine < 0 || a.MaxLines < 0 || a.Offset < 0:
		return nil, errors.New("first_line, max_lines and offset must be 0 or more")
	case a.Binary && (a.FirstLine != 0 || a.MaxLines != 0):
		return nil, errors.New("first_line and max_lines count lines; with binary, give offset and max_bytes")
	case !a.Binary && a.Offset != 0:
		return nil, errors.New("offset counts bytes, which needs binary; without, give first_line")
	}
	f, st, err := openFile(a.Path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &tool.ReadFileResult{Path: a.Path, Size: st.Size}
	if a.Binary {
		err = readBytes(ctx, f, a.Offset, most, r)
	} else {
		err = readLines(ctx, f, max(1, a.FirstLine), a.MaxLines, most, r)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// within returns a number of the arguments, or its default for 0.
func within(name string, n, normal, most int) (int, error) {
	switch {
	case n < 0 || n > most:
		return 0, fmt.Errorf("%s is %d, want 1 to %d", name, n, most)
	case n == 0:
		return normal, nil
	}
	return n, nil
}

// readBytes reads bytes of a file, and one more to see whether it goes on.
func readBytes(ctx context.Context, f *os.File, offset int64, most int, r *tool.ReadFileResult) error {
	var b bytes.Buffer
	if _, err := b.ReadFrom(&source{ctx, io.NewSectionReader(f, offset, int64(most)+1)}); err != nil {
		return explain(r.Path, err)
	}
	if r.Truncated = b.Len() > most; r.Truncated {
		b.Truncate(most)
	}
	r.Binary, r.Content = true, base64.StdEncoding.EncodeToString(b.Bytes())
	return nil
}

// readLines reads whole lines, as many as fit.
func readLines(ctx context.Context, f *os.File, first, lines, most int, r *tool.ReadFileResult) error {
	br := bufio.NewReaderSize(&source{ctx, f}, chunk)
	at, offset, err := skipLines(br, first)
	if err != nil {
		return explain(r.Path, err)
	}
	if at < first {
		if first > 1 {
			return fmt.Errorf("%s has %d lines, but first_line is %d", show(r.Path), at, first)
		}
		return nil // an empty file
	}
	r.FirstLine = first
	var out []byte
	for lines == 0 || r.Lines < lines {
		line, err := oneLine(br, most-len(out))
		if err == errLong {
			if r.Lines > 0 {
				r.Truncated = true
				break // begins the next part
			}
			return longLine(f, line, first, offset, r)
		}
		out = append(out, line...)
		if len(line) > 0 {
			r.Lines++
		}
		if err == io.EOF {
			return text(out, r)
		}
		if err != nil {
			return explain(r.Path, err)
		}
	}
	if _, err := br.Peek(1); err == nil {
		r.Truncated = true
	}
	if r.Truncated {
		r.NextLine = first + r.Lines
	}
	return text(out, r)
}

// skipLines reads up to a line. It gives the line's number and where it begins,
// or, of a file that ends before it, how many lines there are.
func skipLines(br *bufio.Reader, first int) (at int, offset int64, err error) {
	begun := false // the line at+1
	for at = 0; at+1 < first; {
		part, err := br.ReadSlice('\n')
		offset += int64(len(part))
		begun = begun || len(part) > 0
		switch {
		case err == nil:
			at, begun = at+1, false
		case err == bufio.ErrBufferFull:
		case err != io.EOF:
			return 0, 0, err
		default:
			if begun {
				at++
			}
			return at, offset, nil
		}
	}
	if _, err := br.Peek(1); err == io.EOF {
		return at, offset, nil
	} else if err != nil {
		return 0, 0, err
	}
	return first, offset, nil
}

var errLong = errors.New("a longer line")

// oneLine reads a line with its end. Of one that is longer than most bytes it
// gives those, and errLong; whether it does is known before anything is lost.
func oneLine(br *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > most {
			return line[:most], errLong
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// longLine returns the beginning of a line that is longer than what was asked for.
func longLine(f *os.File, line []byte, first int, offset int64, r *tool.ReadFileResult) error {
	for n := 1; n < utf8.UTFMax && n < len(line); n++ { // not through a character
		if c := line[len(line)-n:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				line = line[:len(line)-n]
			}
			break
		}
	}
	r.Lines, r.Truncated = 1, true
	rest := offset + int64(len(line))
	r.Note = fmt.Sprintf("line %d is longer than max_bytes and is cut; with binary, it goes on at offset %d", first, rest)
	if another(f, rest) {
		r.NextLine = first + 1
		r.Note += fmt.Sprintf("; the next line is first_line %d", r.NextLine)
	}
	return text(line, r)
}

// another reports whether a line that goes on at an offset is followed by another
// one, as far as that shows soon.
func another(f *os.File, offset int64) bool {
	br := bufio.NewReaderSize(io.NewSectionReader(f, offset, tool.MaxReadBytes), chunk)
	for {
		switch _, err := br.ReadSlice('\n'); err {
		case nil:
			_, err = br.Peek(1)
			return err == nil
		case bufio.ErrBufferFull:
		default:
			return false
		}
	}
}

func text(b []byte, r *tool.ReadFileResult) error {
	if bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
		return fmt.Errorf("%s is a binary file of %d bytes; to read its bytes as base64, set binary: true", show(r.Path), r.Size)
	}
	r.Content = string(b)
	return nil
}

// source reads until the context ends, a chunk at a time.
type source struct {
	ctx context.Context
	r   io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p[:min(len(p), chunk)])
}
