package facts

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Snapshot is the state of files that programs of the host may run or trust later and
// that a mount can't protect (B8): by absolute path a digest, "dir" for a protected
// directory, "unreadable", or why a directory was not fully checked.
type Snapshot map[string]string

const (
	isDir      = "dir"
	unreadable = "unreadable"
	unchecked  = "not fully checked: "
	// byConfig separates a digest from the file of git configuration that names the
	// file, which doesn't count otherwise.
	byConfig = "\x00named by "
)

// Change is a difference between two snapshots.
type Change struct {
	Path string
	Kind ChangeKind
	// Why says what a NotChecked reached; of Named it is the file of configuration.
	Why string
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes. NotChecked means unknown: a bound of the search was reached.
// Named is a file that git's configuration names since it changed, Replaced is a root: what workers wrote to the former one isn't compared.
const (
	Changed    ChangeKind = "changed"
	New        ChangeKind = "new"
	Removed    ChangeKind = "removed"
	Named      ChangeKind = "named"
	NotChecked ChangeKind = "not fully checked"
	Replaced   ChangeKind = "replaced, renamed or removed on the host"
)

// Written reports whether it is of a file that a worker may have written, and not of
// what isn't known.
func (c Change) Written() bool { return c.Kind != NotChecked && c.Kind != Replaced }

// snapshotFile is the snapshot of `up`, next to the record of the project.
const snapshotFile = "protected.json"

// maxSnapshot bounds a saved snapshot, in bytes.
const maxSnapshot = 256 << 20

// NotChecked lists what the snapshot doesn't cover.
func (s Snapshot) NotChecked() []Change {
	var out []Change
	for p, digest := range s {
		if why, ok := strings.CutPrefix(digest, unchecked); ok {
			out = append(out, Change{p, NotChecked, why})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// Compare returns what after doesn't cover, then the differences, each in order of
// path.
func (s Snapshot) Compare(after Snapshot) []Change {
	out := after.NotChecked()
	for p, digest := range after {
		if strings.HasPrefix(digest, unchecked) {
			continue
		}
		_, had := s[p]
		_, by, _ := strings.Cut(digest, byConfig)
		switch {
		case !had && s.digest(by) != after.digest(by):
			out = append(out, Change{p, Named, by})
		case !had:
			out = append(out, Change{Path: p, Kind: New})
		case s.digest(p) != after.digest(p):
			out = append(out, Change{Path: p, Kind: Changed})
		}
	}
	for p, digest := range s {
		if _, ok := after[p]; !ok && !strings.HasPrefix(digest, unchecked) && !after.missed(p) && !after.unnamed(p) {
			out = append(out, Change{Path: p, Kind: Removed})
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if (a.Kind == NotChecked) != (b.Kind == NotChecked) {
			return a.Kind == NotChecked
		}
		return a.Path < b.Path
	})
	return out
}

// digest returns what is known of a path; "" for nothing.
func (s Snapshot) digest(p string) string {
	what, _, _ := strings.Cut(s[p], byConfig)
	return what
}

// unnamed reports whether a path that isn't in the snapshot is a file all the same, and
// in no closed directory: no name and no configuration makes it count any more. Where a
// directory was replaced by a link there is another file.
func (s Snapshot) unnamed(p string) bool {
	info, err := os.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if end, err := hostlink.Follow(p, nil); err != nil || end != p {
		return false
	}
	for up := filepath.Dir(p); up != filepath.Dir(up); up = filepath.Dir(up) {
		if s[up] == unreadable {
			return false
		}
	}
	return true
}

// missed reports whether a path is in a directory that was not fully checked.
func (s Snapshot) missed(p string) bool {
	for up := filepath.Dir(p); ; up = filepath.Dir(up) {
		if strings.HasPrefix(s[up], unchecked) {
			return true
		}
		if up == filepath.Dir(up) {
			return false
		}
	}
}

// Save writes the snapshot to a directory.
func (s Snapshot) Save(in string) error {
	text := make(Snapshot, len(s))
	for p, what := range s {
		text[keyOf(p)] = what
	}
	data, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(in, snapshotFile), data, 0o600, -1, -1)
}

// LoadSnapshot reads the snapshot written by [Snapshot.Save]; it returns nil, nil if
// there is none.
func LoadSnapshot(from string) (Snapshot, error) {
	data, err := boundedfile.Read(filepath.Join(from, snapshotFile), maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	for key, what := range s {
		if p, err := strconv.Unquote(key); err == nil {
			delete(s, key)
			s[p] = what
		}
	}
	return s, nil
}

// keyOf returns a path as a JSON key, which must be UTF-8: other paths are quoted, as
// no absolute path begins with a quote.
func keyOf(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

// within reports whether a path is or is in one of the roots.
func within(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return subpath.Within(path, root) })
}

// outermost leaves out directories inside others of the list.
func outermost(all []string) (roots []string) {
	slices.Sort(all)
	for _, p := range all {
		if !slices.ContainsFunc(roots, func(r string) bool { return p == r || len(below([]string{p}, r)) > 0 }) {
			roots = append(roots, p)
		}
	}
	return roots
}
