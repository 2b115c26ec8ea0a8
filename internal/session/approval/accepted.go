package approval

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

// Accepted is the file in which a user's machine keeps what the user said always
// to, by the real path of each workshop.yaml: what a file that others write, too,
// says of itself doesn't count ([Policy.Max]).
type Accepted struct{ Path string }

// maxAccepted bounds the file, in bytes.
const maxAccepted = 4 << 20

type acceptedFile struct {
	Files map[string][]Rule `json:"files"`
}

// Rules returns what was accepted for a workshop.yaml. A file that can't be read is
// an error, none at all is nothing.
func (a Accepted) Rules(file string) ([]Rule, error) {
	f, err := a.read()
	if err != nil {
		return nil, err
	}
	return f.Files[file], nil
}

func (a Accepted) read() (f acceptedFile, err error) {
	data, err := boundedfile.Read(a.Path, maxAccepted)
	if errors.Is(err, fs.ErrNotExist) {
		return acceptedFile{Files: map[string][]Rule{}}, nil
	}
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&f); err != nil {
		return f, fmt.Errorf("%s can't be read as what you agreed to (%v): remove it to be asked again", a.Path, err)
	}
	if f.Files == nil {
		f.Files = map[string][]Rule{}
	}
	return f, nil
}

// Add keeps a rule for a workshop.yaml, in one step. The file is for this user
// alone (0600).
func (a Accepted) Add(file string, r Rule) error {
	if err := os.MkdirAll(filepath.Dir(a.Path), 0o700); err != nil {
		return err
	}
	lock := flock.New(a.Path+".lock", flock.SetPermissions(0o600))
	if err := waitLock(lock); err != nil {
		return err
	}
	defer lock.Close()
	f, err := a.read()
	if err != nil {
		return err
	}
	if slices.Contains(f.Files[file], r) {
		return nil
	}
	f.Files[file] = append(f.Files[file], r)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return err
	}
	return atomicfile.Write(a.Path, b.Bytes(), 0o600)
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
