package facts

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
)

// Redefinition is a file of a definition that differs from what somebody accepted, and
// that workers of a project can have written or removed.
type Redefinition struct {
	Path string
	// By is the record of their project.
	By *Record
}

// Before returns the text that was there before, where it is known.
func (d Redefinition) Before() string { return d.By.Definition[d.Path] }

// Definition is what a workshop was loaded from.
type Definition struct {
	Dir string // of the project, with symlinks resolved
	// Known are the texts that records keep, Raw the contents, by path.
	Known map[string]string
	Raw   map[string][]byte
	// Absent are files that aren't there, and would be read if they were.
	Absent []string
}

// Redefined compares a definition with the records of all projects, whatever their
// names and directories. What the record of the project itself has was accepted; empty:
// it has none.
func (d Definition) Redefined(project string, all []*Record) (list []Redefinition) {
	var own *Record
	if i := slices.IndexFunc(all, func(r *Record) bool { return project != "" && r.Project == project }); i >= 0 {
		own = all[i]
	}
	trails := map[string]trail{}
	trailOf := func(p string) trail {
		t, ok := trails[p]
		if !ok {
			t = follow(p)
			trails[p] = t
		}
		return t
	}
	for _, r := range all {
		open := lasting(r.openings())
		if len(open) == 0 {
			continue
		}
		baseline := sync.OnceValue(func() Snapshot {
			s, err := r.Baseline()
			if err != nil {
				return nil // nothing is known to be as it was
			}
			return s
		})
		// What the baseline has of a file, wherever symbolic links lead to it, unless a
		// worker can have made one of them.
		noted := func(p string) string {
			t := trailOf(p)
			if t.access(open).links {
				return ""
			}
			return baseline().digest(t.end)
		}
		differs := func(p string) bool {
			text, there := d.Known[p]
			if !there { // it may have been there
				_, err := os.Stat(p)
				if !errors.Is(err, fs.ErrNotExist) || trailOf(p).access(open).by == nil {
					return false
				}
				_, had := r.Definition[p]
				return had || noted(p) != ""
			}
			if old, ok := r.Definition[p]; ok && old == text || trailOf(p).untouched(open) {
				return false
			}
			if own != nil {
				if old, ok := own.Definition[p]; ok && old == text {
					return false
				}
			}
			digest := digestOf(p, d.Raw[p])
			return digest == "" || noted(p) != digest
		}
		paths := slices.AppendSeq(slices.Clone(d.Absent), maps.Keys(d.Known))
		if r.Dir == d.Dir {
			paths = slices.AppendSeq(paths, maps.Keys(r.Definition))
		}
		for _, p := range paths {
			found := slices.ContainsFunc(list, func(x Redefinition) bool { return x.Path == p })
			if !found && differs(p) {
				list = append(list, Redefinition{p, r})
			}
		}
	}
	slices.SortFunc(list, func(x, y Redefinition) int { return cmp.Compare(x.Path, y.Path) })
	return list
}
