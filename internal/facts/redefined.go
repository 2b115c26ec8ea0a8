package facts

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Redefinition is a file of a definition that differs from what somebody accepted, and
// that workers of a project can have written or removed.
type Redefinition struct {
	Path string
	// By is the record of their project.
	By *Record
	// Before is the text that was accepted, where it is known.
	Before string
}

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
// names and directories. Of a path that the record of the project itself has, only what
// that has counts: the baseline of another project may be older, and its workers could
// restore that. An empty name: the project has no record.
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
			} else if trailOf(p).untouched(open) {
				return false
			}
			if before, was, known := own.accepted(p); known {
				return was != there || before != text
			}
			old, had := r.Definition[p]
			switch {
			case !there:
				return had || noted(p) != ""
			case had && old == text:
				return false
			}
			digest := digestOf(p, d.Raw[p])
			return digest == "" || noted(p) != digest
		}
		paths := slices.AppendSeq(slices.Clone(d.Absent), maps.Keys(d.Known))
		for _, has := range []*Record{r, own} {
			if has != nil && has.Dir == d.Dir {
				paths = slices.AppendSeq(paths, maps.Keys(has.Definition))
			}
		}
		for _, p := range paths {
			found := slices.ContainsFunc(list, func(x Redefinition) bool { return x.Path == p })
			if !found && differs(p) {
				before, _, known := own.accepted(p)
				if !known {
					before = r.Definition[p]
				}
				list = append(list, Redefinition{p, r, before})
			}
		}
	}
	sortfunc.Stable(list, func(x, y Redefinition) int { return cmp.Compare(x.Path, y.Path) })
	return list
}

// accepted returns what the record has of a file of the project's definition: its text,
// or that it wasn't there. Not known: the definition didn't have it. r may be nil.
func (r *Record) accepted(p string) (text string, there, known bool) {
	if r == nil {
		return "", false, false
	}
	text, there = r.Definition[p]
	return text, there, there || slices.Contains(r.Absent, p)
}

// Concerns reports whether the record says something of a file: workers of its project
// may write it, or it has what the file was.
func (r *Record) Concerns(p string) bool {
	baseline, _ := r.Baseline() // an error: it has nothing
	return r.concerns(p, baseline)
}

func (r *Record) concerns(p string, baseline Snapshot) bool {
	open := lasting(r.openings())
	_, has := r.Definition[p]
	return has || baseline.digest(p) != "" || len(open) > 0 && !untouched(open, p)
}

// Note takes files of a definition of another project as somebody accepted them. What the
// record had of them is no longer what was accepted.
func (r *Record) Note(paths []string, d Definition) error {
	baseline, err := r.Baseline()
	if err != nil {
		return nil // it vouches for nothing
	}
	for _, p := range paths {
		if r.concerns(p, baseline) {
			text, there := d.Raw[p]
			r.note(baseline, p, d.Known[p], text, there)
		}
	}
	return r.Keep(baseline)
}

// note makes a file what it is in the definition and the baseline, and so what symbolic
// links lead to from it: known is what the definition has of its text.
func (r *Record) note(baseline Snapshot, p, known string, text []byte, there bool) {
	_, had := r.Definition[p]
	switch {
	case !there:
		delete(r.Definition, p)
	case had:
		r.Definition[p] = known
	}
	end := follow(p).end
	if is := digestOf(end, text); there && is != "" {
		baseline[end] = is
	} else {
		delete(baseline, end)
	}
	if end == p {
		return
	}
	now := Snapshot{}
	info, err := os.Lstat(p)
	switch {
	case strings.HasPrefix(baseline.digest(p), leadsTo):
		baseline[p] = leadsTo + end
	case err == nil && info.Mode()&fs.ModeSymlink != 0 && now.file(p) == nil && now[p] != "":
		baseline[p] = now[p]
	default:
		delete(baseline, p)
	}
}
