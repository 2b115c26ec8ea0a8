// Package store looks at the user's directory of models: which files are there, and whether
// they are what a workshop names.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// Model is a file of a model.
type Model struct {
	// Path is absolute, links resolved.
	Path string
	Size int64
	seen stamp
}

// NotGGUFError is a file that isn't a model.
type NotGGUFError struct{ Path string }

func (e *NotGGUFError) Error() string { return e.Path + " is not a GGUF file" }

// HashError is a file that isn't what was expected. The sums are in hexadecimal digits.
type HashError struct{ Path, Want, Got string }

func (e *HashError) Error() string {
	return fmt.Sprintf("%s has another sha256: %s, and not %s", e.Path, e.Got, e.Want)
}

// Find looks at a file of the directory. One that isn't there is fs.ErrNotExist; one that
// isn't a model is a [*NotGGUFError].
func Find(dir, name string) (Model, error) {
	path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return Model{}, err
	}
	f, err := open(path)
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Model{}, err
	}
	// docs/gguf.md of ggml-org/ggml: the magic, and a version of 4 bytes.
	var head [8]byte
	if _, err := io.ReadFull(f, head[:]); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Model{}, err
	}
	if string(head[:4]) != "GGUF" {
		return Model{}, &NotGGUFError{path}
	}
	return Model{Path: path, Size: info.Size(), seen: stampOf(info)}, nil
}

// open opens a regular file, and waits for none that isn't.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return os.Open(path)
}

// stamp reports whether a file is the one that was read. Of a file that was written the change
// time is another, whatever its modification time was set to (inode(7)).
type stamp struct {
	Device, Inode uint64 `json:",omitempty"`
	Size          int64
	Modified      int64
	Changed       int64 `json:",omitempty"`
}

// sum is what a file had when it was read.
type sum struct {
	stamp
	SHA256 string
}

// maxSums bounds the file of sums, in bytes.
const maxSums = 1 << 20

// Verify compares a model with its sum, in small hexadecimal digits. sums is a file of sums
// that were read before; "": none is kept. read gets the bytes as they are read; nil: nobody
// looks. Another sum is a [*HashError].
func (m Model) Verify(ctx context.Context, want, sums string, read func(n int)) error {
	known := readSums(sums)
	got, ok := known[m.Path]
	if !ok || got.stamp != m.seen || m.seen.Changed == 0 {
		text, err := m.hash(ctx, read)
		if err != nil {
			return err
		}
		got = sum{m.seen, text}
		if sums != "" {
			known[m.Path] = got
			if err := writeSums(sums, known); err != nil {
				return err
			}
		}
	}
	if got.SHA256 != want {
		return &HashError{m.Path, want, got.SHA256}
	}
	return nil
}

func (m Model) hash(ctx context.Context, read func(n int)) (string, error) {
	f, err := open(m.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if read != nil {
			read(n)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if stampOf(info) != m.seen {
		return "", fmt.Errorf("%s changes while it is read", m.Path)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readSums reads the file of sums. One that can't be read is none: all is read again.
func readSums(path string) map[string]sum {
	out := map[string]sum{}
	if path == "" {
		return out
	}
	data, err := boundedfile.Read(path, maxSums)
	if err != nil || json.Unmarshal(data, &out) != nil || out == nil { // null is JSON
		return map[string]sum{}
	}
	return out
}

// writeSums writes it, without files that are gone.
func writeSums(path string, all map[string]sum) error {
	for p := range all {
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			delete(all, p)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}
