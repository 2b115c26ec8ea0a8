package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unicode"
	"unicode/utf16"

	"github.com/gofrs/flock"
)

// Limits of the files, as those of container logs: MaxFiles files of MaxSize
// bytes, the newest without a number, then .1, .2.
const (
	MaxSize  = 10 << 20
	MaxFiles = 3
)

// Log is an open audit file. It is safe for use by several goroutines and
// processes (each line is one write of O_APPEND).
type Log struct {
	path, project string
	secrets       *redactor

	mu   sync.Mutex
	file *os.File // nil: closed
}

// Open opens or creates the file (0600, its directory 0700). secrets are values
// that never enter it; those shorter than [MinSecret] can't be found safely and
// are not looked for.
func Open(path, project string, secrets []string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := &Log{path: path, project: project, secrets: newRedactor(secrets)}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New(l.path + " is not a regular file")
	case err == nil && info.Mode().Perm()&0o077 != 0:
		err = f.Chmod(0o600)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

// Write writes a line; an error means that it isn't written down: the call
// must not run then.
func (l *Log) Write(e Event) error {
	line, err := l.line(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return os.ErrClosed
	}
	if err := l.rotate(len(line)); err != nil {
		return err
	}
	n, err := l.file.Write(line)
	if err == nil && n < len(line) {
		err = errors.New("half a line was written")
	}
	return err
}

// line makes the line of an event, without secrets.
func (l *Log) line(e Event) ([]byte, error) {
	e.Project, e.Time = l.project, e.Time.UTC()
	e.Arguments = l.secrets.arguments(e.Arguments)
	for _, s := range []*string{&e.Client, &e.Why, &e.Error, &e.Tool, &e.Worker} {
		*s = cutTo(l.secrets.text(*s), maxName)
	}
	chain := make([]string, len(e.Chain))
	for i, s := range e.Chain {
		chain[i] = l.secrets.text(s)
	}
	e.Chain = chain
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends the line
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return plain(b.Bytes()), err
}

// plain escapes what JSON may hold as it is and a terminal would act on, or not
// show: a line is read with tail too.
func plain(line []byte) []byte {
	special := func(r rune) bool { return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if bytes.IndexFunc(line, special) < 0 {
		return line
	}
	var b bytes.Buffer
	for _, r := range string(line) {
		switch {
		case !special(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// rotate makes room for a line. Another process may have done it, or do it now:
// whoever has the lock looks again.
func (l *Log) rotate(more int) error {
	if same, err := l.current(); err != nil || !same {
		if err := errors.Join(err, l.reopen()); err != nil {
			return err
		}
	}
	info, err := l.file.Stat()
	if err != nil || info.Size()+int64(more) <= MaxSize || info.Size() == 0 {
		return err
	}
	lock := flock.New(l.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Close()
	if same, err := l.current(); err != nil {
		return err
	} else if same {
		for i := MaxFiles - 1; i > 0; i-- {
			if err := os.Rename(l.numbered(i-1), l.numbered(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return l.reopen()
}

// current reports whether the open file is still the one of that name.
func (l *Log) current() (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

func (l *Log) reopen() error {
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}

func (l *Log) numbered(i int) string {
	if i == 0 {
		return l.path
	}
	return l.path + "." + string(rune('0'+i))
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}
