// Package trust keeps what a user has accepted once on this machine: rules of approvals,
// builds, and sources of other repositories; and what the settings of the user and the
// machine say of sources (B43, B47). All of it is outside of any repository: what a file
// that others write, too, says of itself doesn't count. Whatever can't be read is an
// error, and none of it is accepted.
package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// List is a file of what was accepted, by a name.
type List[T comparable] struct {
	Path string
	// Key is that of the file's one object: "files", "sources".
	Key string
}

// maxList bounds the file, in bytes.
const maxList = 4 << 20

// Of returns what was accepted for a name. A file that can't be read is an error, none at
// all is nothing.
func (l List[T]) Of(name string) ([]T, error) {
	all, err := l.read()
	return all[name], err
}

// Has reports whether something was accepted for a name.
func (l List[T]) Has(name string, what T) (bool, error) {
	all, err := l.Of(name)
	return slices.Contains(all, what), err
}

func (l List[T]) read() (map[string][]T, error) {
	data, err := boundedfile.Read(l.Path, maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]T{}, nil
	}
	if err != nil {
		return nil, err
	}
	var file map[string]map[string][]T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&file); err == nil {
		for key := range file {
			if key != l.Key {
				err = fmt.Errorf("unknown field %q", key)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s can't be read as what you agreed to (%v): remove it to be asked again", l.Path, err)
	}
	if file[l.Key] == nil {
		return map[string][]T{}, nil
	}
	return file[l.Key], nil
}

// Add keeps something for a name, in one step. The file is for this user alone (0600).
func (l List[T]) Add(name string, what T) error {
	return l.change(func(all map[string][]T) bool {
		if slices.Contains(all[name], what) {
			return false
		}
		all[name] = append(all[name], what)
		return true
	})
}

// change rewrites the file if edit reports a change.
func (l List[T]) change(edit func(map[string][]T) bool) error {
	if err := os.MkdirAll(filepath.Dir(l.Path), 0o700); err != nil {
		return err
	}
	lock := flock.New(l.Path+".lock", flock.SetPermissions(0o600))
	if err := waitLock(lock); err != nil {
		return err
	}
	defer lock.Close()
	all, err := l.read()
	if err != nil {
		return err
	}
	if !edit(all) {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]map[string][]T{l.Key: all}); err != nil {
		return err
	}
	return atomicfile.Write(l.Path, b.Bytes(), 0o600)
}

// Remove forgets what match reports, of all names.
func (l List[T]) Remove(match func(name string, what T) bool) error {
	return l.change(func(all map[string][]T) bool {
		removed := false
		for name, list := range all {
			left := slices.DeleteFunc(slices.Clone(list), func(what T) bool { return match(name, what) })
			removed = removed || len(left) < len(list)
			if all[name] = left; len(left) == 0 {
				delete(all, name)
			}
		}
		return removed
	})
}

// waitLock waits a little for another process that is writing.
func waitLock(l *flock.Flock) error {
	for range 1000 {
		ok, err := l.TryLock()
		if ok || err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s is locked by another process", l.Path())
}
