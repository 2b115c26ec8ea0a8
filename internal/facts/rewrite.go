package facts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/compose"
)

// Rewrite runs write, which gives the file name the text after in the place of before, or
// of no file if that is nil, and updates the records: a change by this program isn't one
// by a worker. A file that had changed before stays a change in a record, unless own, the
// record of the file's project, has its text: others have an older one then. So does what
// is there after it if it isn't that text. own may be nil.
func Rewrite(own *Record, others []*Record, name string, before, after []byte, write func() error) error {
	var updates []func() error
	_, there, _ := own.accepted(name)
	accepted := there && own.Definition[name] == string(before)
	records := others
	if own != nil {
		records = append([]*Record{own}, others...)
	}
	for _, r := range records {
		baseline, err := r.Baseline()
		if err != nil {
			baseline = nil
		}
		now := Snapshot{}
		pinned := now.file(name) == nil && baseline[name] != "" && baseline[name] == now[name]
		old, had := r.Definition[name]
		had = had && old == string(before)
		if r != own && accepted && r.concerns(name, baseline) {
			pinned, had = baseline != nil, had || r.Definition[name] != ""
		}
		if before == nil && baseline != nil && baseline[name] == "" && now[name] == "" && r.exposes(name) {
			pinned = true
			updates = append(updates, baseline.newDir(filepath.Dir(name)))
		}
		if pinned {
			updates = append(updates, func() error {
				if is := digestOf(name, after); baseline[name] == "" && is != "" {
					baseline[name] = is
				}
				baseline.Pin(map[string][]byte{name: after})
				return baseline.Save(r.at)
			})
		}
		if had {
			updates = append(updates, func() error {
				r.Definition[name] = string(after)
				return r.Save()
			})
		}
	}
	if err := write(); err != nil {
		return err
	}
	for _, update := range updates {
		if err := update(); err != nil {
			return err
		}
	}
	return nil
}

// newDir returns what adds a directory that isn't there yet to the snapshot, if that has
// directories of its name.
func (s Snapshot) newDir(dir string) func() error {
	_, err := os.Lstat(dir)
	missing := errors.Is(err, fs.ErrNotExist) && compose.IsProtected(filepath.Base(dir))
	return func() error {
		if missing && s[dir] == "" {
			s[dir] = isDir
		}
		return nil
	}
}

// exposes reports whether workers of the project may have written a file.
func (r *Record) exposes(name string) bool {
	open := lasting(r.openings())
	return len(open) > 0 && !untouched(open, name)
}

// Changed reports whether a file is there and isn't what it was at `up`, so that a worker
// of the project may have written it.
func (r *Record) Changed(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist) && r.exposes(name) && !r.saw(name)
}
