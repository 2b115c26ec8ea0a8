package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Record is the record of a running project, written by the first `up` and extended by
// later ones: enough to find the project, to compare what workers may have written
// with the original, and to end it, whatever they did to the project's files (B8). It
// is in the user's state directory, which no worker can reach, under the project's
// name, until `down`.
type Record struct {
	Project string
	Dir     string // of the project, with symlinks resolved
	// Named: the directory gave the project its name, not -p.
	Named bool
	// Place is the engine that it is up on; nil: noted by a version that didn't note it.
	Place      *Place   `json:",omitempty"`
	RuntimeDir string   // "" for an engine elsewhere
	Roots      []string // where workers may write, at most
	// RootIDs are the identities of roots, see [entryID], at the last `up` that a
	// person asked for.
	RootIDs map[string]string `json:",omitempty"`
	// Openings say what of the roots they may write; empty: everything.
	Openings []Opening `json:",omitempty"`
	Own      []string  // the workshop's own files
	// Definition has the texts that the workshop was loaded from, by path.
	Definition map[string]string `json:",omitempty"`
	// Absent are files that weren't there, and would have been read if they were.
	Absent []string `json:",omitempty"`
	// Granted is what workers were granted by their last `up`, by their names.
	Granted map[string]Grant `json:",omitempty"`
	// Unsaid are the workers whose grant changed without an `up` that said it, as by a
	// call that started them.
	Unsaid []string `json:",omitempty"`
	// Down: nothing of the project is up. The record is kept for what changed and
	// wasn't accepted.
	Down bool `json:",omitempty"`
	// Accepted: the baseline is that of an `up --accept-watched`, no longer of the
	// first `up`.
	Accepted bool `json:",omitempty"`
	// OneOff: it is of one command (`workshop run`). Its name is nobody's to look for.
	OneOff bool `json:",omitempty"`
	// ModelOf: it is the room of a model of the directory's workshop, the project of that
	// name.
	ModelOf string `json:",omitempty"`
	at      string
}

// Grant is what a worker is granted, in words: by facet, such as "memory".
type Grant map[string]string

const (
	recordFile = "project.json"
	maxRecord  = 16 << 20 // bytes
)

// NewRecord returns the record of a project with facts; state is the directory of all
// records. contained: the engine enforces mounts.
func NewRecord(state string, c *compose.Compiled, named, contained bool) *Record {
	r := &Record{
		Project: c.Facts.Project, Dir: c.Facts.ProjectDir, Named: named,
		RuntimeDir: c.Facts.RuntimeDir, at: filepath.Join(state, c.Facts.Project),
	}
	if r.RuntimeDir != "" { // a remote engine has no mounts of this machine
		all := openings(c)
		if r.Roots = sources(all); contained {
			r.Openings = all
		}
		r.Renew()
	}
	for _, f := range c.WorkshopFiles() {
		r.Own = append(r.Own, filepath.Join(r.Dir, filepath.FromSlash(f)))
	}
	return r
}

// LoadRecord reads the record of a project; it returns nil, nil if there is none.
func LoadRecord(state, project string) (*Record, error) {
	if state == "" {
		return nil, nil
	}
	r := &Record{at: filepath.Join(state, project)}
	data, err := boundedfile.Read(filepath.Join(r.at, recordFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err == nil && r.Project != project {
		err = fmt.Errorf("it is of project %q", r.Project)
	}
	if err != nil {
		return nil, fmt.Errorf("the record of project %s in %s: %w", project, r.at, err)
	}
	r.each(func(p string) string {
		if path, err := strconv.Unquote(p); err == nil {
			return path
		}
		return p
	})
	return r, nil
}

// Records reads the records of all projects, also of those that are down.
func Records(state string) (all []*Record, err error) {
	entries, err := os.ReadDir(state)
	if state == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		r, problem := LoadRecord(state, e.Name())
		err = errors.Join(err, problem)
		if r != nil {
			all = append(all, r)
		}
	}
	return all, err
}

// each replaces every path.
func (r *Record) each(change func(string) string) {
	r.Roots, r.Own, r.Openings = slices.Clone(r.Roots), slices.Clone(r.Own), slices.Clone(r.Openings)
	r.Absent = slices.Clone(r.Absent)
	lists := [][]string{r.Roots, r.Own, r.Absent}
	for i := range r.Openings {
		o := &r.Openings[i]
		o.Source, o.Covers = change(o.Source), slices.Clone(o.Covers)
		for j := range o.Covers {
			o.Covers[j].Path = change(o.Covers[j].Path)
		}
	}
	for _, byPath := range []*map[string]string{&r.Definition, &r.RootIDs} {
		changed := make(map[string]string, len(*byPath))
		for p, text := range *byPath {
			changed[change(p)] = text
		}
		*byPath = changed
	}
	for _, list := range lists {
		for i, p := range list {
			list[i] = change(p)
		}
	}
	r.Dir, r.RuntimeDir = change(r.Dir), change(r.RuntimeDir)
}

// With returns the record extended by a later `up` of the same directory. A cover that
// was lost stays lost, and a root that was replaced stays so until [Record.Renew].
func (r *Record) With(later *Record) *Record {
	both := *later
	both.Granted, both.Accepted, both.Unsaid = r.Granted, r.Accepted, r.Unsaid
	both.Named, both.Place = r.Named || later.Named, later.Place.since(r.Place)
	both.Roots = outermost(slices.Concat(r.Roots, later.Roots))
	both.Openings = distinct(slices.Concat(r.openings(), later.openings()))
	ids := map[string]string{}
	for _, o := range r.Openings {
		for _, c := range o.Covers {
			ids[c.Path] = c.ID
		}
	}
	for i := range both.Openings {
		covers := slices.Clone(both.Openings[i].Covers)
		for j, c := range covers {
			if id, ok := ids[c.Path]; ok {
				covers[j].ID = id
			}
		}
		both.Openings[i].Covers = covers
	}
	both.RootIDs = maps.Clone(later.RootIDs)
	if both.RootIDs == nil {
		both.RootIDs = map[string]string{}
	}
	maps.Copy(both.RootIDs, r.RootIDs)
	both.Definition = maps.Clone(r.Definition)
	if both.Definition == nil {
		both.Definition = map[string]string{}
	}
	maps.Copy(both.Definition, later.Definition)
	for _, p := range later.Absent {
		delete(both.Definition, p)
	}
	both.Absent = slices.DeleteFunc(slices.Concat(r.Absent, later.Absent), func(p string) bool {
		_, there := both.Definition[p]
		return there
	})
	slices.Sort(both.Absent)
	both.Absent = slices.Compact(both.Absent)
	both.Own = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Own, later.Own))))
	return &both
}

// Accept takes files as they are now: the baseline has them, and what covers them is
// known by its new identity, unless other changes below it are left, which it returns.
func (r *Record) Accept(paths []string, baseline, now Snapshot, changes []Change) (left []Change) {
	for _, p := range paths {
		if what, ok := now[p]; ok {
			baseline[p] = what
		} else {
			delete(baseline, p)
		}
	}
	left = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return slices.Contains(paths, c.Path) })
	for i := range r.Openings {
		covers := slices.Clone(r.Openings[i].Covers)
		for j, c := range covers {
			below := func(p string) bool { return subpath.Within(p, c.Path) }
			if slices.ContainsFunc(paths, below) && !slices.ContainsFunc(left, func(c Change) bool { return below(c.Path) }) {
				covers[j].ID = entryID(c.Path)
			}
		}
		r.Openings[i].Covers = covers
	}
	return left
}

// Changes returns the changes between two snapshots that a worker can have made, after
// the roots that were replaced.
func (r *Record) Changes(before, now Snapshot) (changes []Change) {
	for _, root := range r.Roots {
		if replaced(r.RootIDs[root], entryID(root)) {
			changes = append(changes, Change{Path: root, Kind: Replaced})
		}
	}
	all := lasting(r.Openings)
	return append(changes, slices.DeleteFunc(before.Compare(now), func(c Change) bool {
		return c.Kind != NotChecked && untouched(all, c.Path)
	})...)
}

// Renew takes the roots as they are now.
func (r *Record) Renew() {
	r.RootIDs = map[string]string{}
	for _, root := range r.Roots {
		r.RootIDs[root] = entryID(root)
	}
}

// replaced reports whether identities are known to be of two entries. A file system may
// have another device number after a restart of the machine.
func replaced(before, now string) bool {
	withoutDevice := func(id string) string {
		parts := strings.SplitN(id, ":", 3)
		return parts[len(parts)-1]
	}
	return before != "" && withoutDevice(before) != withoutDevice(now)
}

// openings are the record's; of one without, all that is in its roots.
func (r *Record) openings() []Opening {
	if len(r.Openings) > 0 {
		return r.Openings
	}
	var all []Opening
	for _, root := range r.Roots {
		all = append(all, Opening{Source: root})
	}
	return all
}

// Take takes a snapshot of the watched files. home is the user's, whose git
// configuration counts too; lookup returns variables of their environment.
func (r *Record) Take(ctx context.Context, home string, lookup func(string) (string, bool)) (Snapshot, error) {
	w := &watcher{ctx: ctx, project: r.Dir, own: map[string]bool{}, roots: r.Roots, home: home, lookup: lookup, most: maxEntries, keeps: maxWatched}
	for _, file := range r.Own {
		w.own[file] = true
	}
	return w.take()
}

// Since names the `up` that the baseline is of.
func (r *Record) Since() string {
	switch {
	case r.OneOff:
		return "the run began"
	case r.Accepted:
		return "`up --accept-watched`"
	}
	return "the first `up`"
}

// Baseline returns the snapshot from before any worker could write.
func (r *Record) Baseline() (Snapshot, error) {
	s, err := LoadSnapshot(r.at)
	if err == nil && s == nil {
		err = errors.New("the snapshot of `up` is missing in " + r.at)
	}
	return s, err
}

// Extend returns a baseline extended by the files of a later snapshot to which workers
// couldn't write by r. Of those that the baseline has it takes the later ones.
func (r *Record) Extend(baseline, later Snapshot) Snapshot {
	out := maps.Clone(baseline)
	all := lasting(r.openings())
	for p, what := range later {
		_, had := baseline[p]
		if strings.HasPrefix(what, unchecked) || slices.ContainsFunc(all, func(o Opening) bool { return o.opens(p) }) {
			continue
		}
		if t := follow(p); t.access(all).by == nil && (!had || t.untouched(all)) {
			out[p] = what
		}
	}
	return out
}

// Keep writes the record, and its baseline before it.
func (r *Record) Keep(baseline Snapshot) error {
	if err := os.MkdirAll(r.at, 0o700); err != nil {
		return err
	}
	if err := baseline.Save(r.at); err != nil {
		return err
	}
	return r.Save()
}

// Save writes the record alone.
func (r *Record) Save() error {
	text := *r
	text.each(keyOf)
	data, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.at, recordFile), data, 0o600, -1, -1)
}

// ForgetRecord removes the record of a project before its baseline, so that a killed
// `down` leaves no record without a baseline.
func ForgetRecord(state, project string) error {
	if state == "" {
		return nil
	}
	at := filepath.Join(state, project)
	if err := os.Remove(filepath.Join(at, recordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(at)
}

// WrittenBy returns a project of another directory than the file's whose workers may have
// written the file since its `up`: they may write there, and the file has changed. Nil if there is none.
func WrittenBy(file string, all []*Record) *Record {
	if real, err := realDir(filepath.Dir(file)); err == nil {
		file = filepath.Join(real, filepath.Base(file))
	}
	for _, r := range all {
		if r.Dir != filepath.Dir(file) && within(file, r.Roots) && !r.saw(file) {
			return r
		}
	}
	return nil
}

// saw reports whether no worker can have changed a file since `up`.
func (r *Record) saw(file string) bool {
	if untouched(lasting(r.Openings), file) {
		return true
	}
	before, err := r.Baseline()
	if err != nil {
		return false
	}
	now := Snapshot{}
	if err := now.file(file); err != nil {
		return false
	}
	return now[file] != "" && now[file] != unreadable && now[file] == before[file]
}
