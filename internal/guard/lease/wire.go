package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/llmdo/workshop/internal/lib/plainjson"
)

var (
	errTooLong = fmt.Errorf("a message of more than %d KiB", MaxLine>>10)
	errMessage = errors.New("a message that is not valid, or of a type or with a field that isn't known")
)

// maxLines and maxLinesBytes bound the lines that a guard names in several messages: more than
// a policy has, and than an `up` tells a broker.
const (
	maxLines      = 1 << 17
	maxLinesBytes = 8 << 20
)

// Reader reads one side's messages. It isn't for several goroutines.
type Reader struct {
	r       io.Reader
	buf     []byte // of MaxLine
	n, used int    // bytes in buf, and those of the last line
}

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, MaxLine)} }

// line returns the next line, without its end; it is valid until [Reader.wipe].
func (r *Reader) line() ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(r.buf[seen:r.n], '\n'); i >= 0 {
			r.used = seen + i + 1
			return r.buf[:r.used-1], nil
		}
		if seen = r.n; seen == len(r.buf) {
			return nil, errTooLong
		}
		n, err := r.r.Read(r.buf[r.n:])
		if r.n += n; n == 0 && err != nil {
			if err == io.EOF && r.n > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// wipe forgets the last line, which may have a value.
func (r *Reader) wipe() {
	n := copy(r.buf, r.buf[r.used:r.n])
	clear(r.buf[n:r.n])
	r.n, r.used = n, 0
}

// Close forgets what was read.
func (r *Reader) Close() { clear(r.buf); r.n, r.used = 0, 0 }

// FromBroker returns the next message of a broker: a *[Lease], whose value is the caller's,
// a *[Revoke] or an *[Answer]. After an error there is none.
func (r *Reader) FromBroker() (any, error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	defer r.wipe()
	kind, fields, err := split(line)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "lease":
		m := &Lease{}
		value := fields["value"]
		delete(fields, "value")
		defer clear(value)
		if err := decode(fields, m); err != nil {
			return nil, err
		}
		if m.Value != nil { // under another spelling of its name
			m.Value.Forget()
			return nil, errMessage
		}
		if m.Value, err = unquote(value); err != nil {
			return nil, err
		}
		if err := m.check(); err != nil {
			m.Value.Forget()
			return nil, err
		}
		return m, nil
	case "revoke":
		m := &Revoke{}
		return m, decode(fields, m)
	case "answer":
		m := &Answer{}
		return checked(m, decode(fields, m), m.check)
	}
	return nil, errMessage
}

// checked returns a message if it could be decoded and is valid.
func checked(m any, err error, check func() error) (any, error) {
	if err == nil {
		err = check()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// FromGuard returns the next message of a guard: *[Lines], all of them, a *[Refused], an
// *[Ask] or an *[AskEnded]. After an error there is none.
func (r *Reader) FromGuard() (any, error) {
	all := &Lines{}
	size := 0
	for more := false; ; {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if size += len(line); size > maxLinesBytes {
			return nil, errMessage
		}
		kind, fields, err := split(line)
		r.wipe()
		if err != nil {
			return nil, err
		}
		switch {
		case kind == "lines":
			m := Lines{}
			if err := decode(fields, &m); err != nil {
				return nil, err
			}
			if all.Lines = append(all.Lines, m.Lines...); len(all.Lines) > maxLines {
				return nil, errMessage
			}
			if more = m.More; !more {
				return all, nil
			}
		case kind == "refused" && !more:
			m := &Refused{}
			return m, decode(fields, m)
		case kind == "ask" && !more:
			m := &Ask{}
			return checked(m, decode(fields, m), m.Check)
		case kind == "ask-ended" && !more:
			m := &AskEnded{}
			return checked(m, decode(fields, m), m.check)
		default:
			return nil, errMessage
		}
	}
}

// split returns the type of a message and its other fields. What is wrong isn't quoted: it
// may be part of a value.
func split(line []byte) (kind string, fields map[string]json.RawMessage, err error) {
	if json.Unmarshal(line, &fields) != nil || json.Unmarshal(fields["type"], &kind) != nil {
		return "", nil, errMessage
	}
	delete(fields, "type")
	return kind, fields, nil
}

// decode reads the fields into m, which must know all of them.
func decode(fields map[string]json.RawMessage, m any) error {
	b, err := json.Marshal(fields)
	if err != nil {
		return errMessage
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(m) != nil {
		return errMessage
	}
	return nil
}

// Write writes a message: [Lines] as several where one would be too long.
func Write(w io.Writer, message any) error {
	var b []byte
	var err error
	switch m := message.(type) {
	case *Lines:
		return writeLines(w, m.Lines)
	case *Refused:
		b, err = encode("refused", m)
	case *Lease:
		if err := m.check(); err != nil {
			return err
		}
		b, err = encode("lease", m)
	case *Revoke:
		b, err = encode("revoke", m)
	case *Ask:
		if err := m.Check(); err != nil {
			return err
		}
		b, err = encode("ask", m)
	case *AskEnded:
		b, err = encode("ask-ended", m)
	case *Answer:
		b, err = encode("answer", m)
	default:
		return errMessage
	}
	if err != nil {
		return err
	}
	defer clear(b)
	if len(b) > MaxLine {
		return errTooLong
	}
	_, err = w.Write(b)
	return err
}

// someLines is how many lines are surely shorter than a message: a room has up to 128 bytes
// of name, a host 253, an endpoint and a credential 40 each.
const someLines = 100

func writeLines(w io.Writer, lines []Line) error {
	for {
		some := lines[:min(someLines, len(lines))]
		lines = lines[len(some):]
		b, err := encode("lines", &Lines{append([]Line{}, some...), len(lines) > 0})
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil || len(lines) == 0 {
			return err
		}
	}
}

// encode returns the line of a message.
func encode(kind string, m any) ([]byte, error) {
	b, err := plainjson.Marshal(m)
	if err != nil {
		return nil, errors.New("the message can't be encoded") // json quotes what it encodes
	}
	defer clear(b)
	out := make([]byte, 0, len(b)+32)
	out = append(out, `{"type":"`+kind+`",`...)
	return append(append(out, b[1:]...), '\n'), nil
}
