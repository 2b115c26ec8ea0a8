package facts

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Opening is a source that a worker may write to through a mount, except for what
// other mounts of that worker cover: it reaches those by their own sources alone, and
// the kernel lets nobody inside rename or remove a mount point (EBUSY).
type Opening struct {
	Source string
	// Covers are entries of Source itself. A mount further down covers nothing,
	// unless the directories above it are mounts too: they could be renamed.
	Covers []Cover `json:",omitempty"`
	// Workers have it, sorted; a record of an older version names none.
	Workers []string `json:",omitempty"`
}

// Cover is a path with a mount of a worker on it. The kernel takes the mount away when
// somebody on the host replaces or removes what is there: rename(2) detaches mounts
// of other mount namespaces. The worker can write to what takes its place until it is
// ended.
type Cover struct {
	Path string
	// ID is the identity of what is there, see [entryID]; empty if it isn't known.
	ID string `json:",omitempty"`
}

// holds reports whether the mount was never lost: what it is on is still there.
func (c Cover) holds() bool { return c.ID != "" && c.ID == entryID(c.Path) }

// lasting returns openings with the covers that hold.
func lasting(all []Opening) []Opening {
	out := slices.Clone(all)
	for i, o := range out {
		out[i].Covers = slices.DeleteFunc(slices.Clone(o.Covers), func(c Cover) bool { return !c.holds() })
	}
	return out
}

// openings lists what workers may write to, each once.
func openings(c *compose.Compiled) (all []Opening) {
	repositories := map[string]bool{} // of linked worktrees and submodules
	if c.Facts != nil {
		for _, sf := range c.Facts.Sources {
			for _, l := range sf.Linked {
				repositories[l.Real] = true
			}
		}
	}
	for name, role := range c.Roles {
		if role != compose.RoleWorker {
			continue
		}
		mounts := c.Project.Services[name].Volumes
		for _, m := range mounts {
			if m.Type != types.VolumeTypeBind || m.ReadOnly {
				continue
			}
			o := Opening{Source: filepath.Clean(m.Source), Workers: []string{name}}
			// The host's git writes what a worker committed into directories; a file
			// it replaces.
			commits := slices.ContainsFunc(mounts, func(git types.ServiceVolumeConfig) bool {
				return !git.ReadOnly && (isDotGit(path.Base(git.Target)) && subpath.Within(git.Target, m.Target) || repositories[git.Source])
			})
			for _, inner := range mounts {
				at := path.Clean(inner.Target)
				if above := path.Clean(m.Target); at != above && path.Dir(at) == above {
					p := filepath.Join(o.Source, path.Base(at))
					if info, err := os.Lstat(p); commits && err == nil && info.IsDir() {
						continue
					}
					o.Covers = append(o.Covers, Cover{p, entryID(p)})
				}
			}
			sortfunc.Stable(o.Covers, func(x, y Cover) int { return cmp.Compare(x.Path, y.Path) })
			all = append(all, o)
		}
	}
	return distinct(all)
}

// distinct leaves out openings that others of the list have. Equal ones become one of
// all their workers.
func distinct(all []Opening) (out []Opening) {
	byPath := func(x, y Cover) int { return cmp.Compare(x.Path, y.Path) }
	sortfunc.Stable(all, func(x, y Opening) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(len(x.Covers), len(y.Covers)), slices.CompareFunc(x.Covers, y.Covers, byPath))
	})
	for _, o := range all {
		has := func(other Opening) bool {
			return other.Source == o.Source && !slices.ContainsFunc(other.Covers, func(c Cover) bool {
				return !slices.ContainsFunc(o.Covers, func(x Cover) bool { return x.Path == c.Path })
			})
		}
		switch i := slices.IndexFunc(out, has); {
		case i < 0:
			o.Workers = slices.Clone(o.Workers)
			out = append(out, o)
		case len(out[i].Covers) == len(o.Covers):
			out[i].Workers = append(out[i].Workers, o.Workers...)
		}
	}
	for i := range out {
		slices.Sort(out[i].Workers)
		out[i].Workers = slices.Compact(out[i].Workers)
	}
	return out
}

// opens reports whether a path is writable through the opening.
func (o Opening) opens(p string) bool {
	return subpath.Within(p, o.Source) && !slices.ContainsFunc(o.Covers, func(c Cover) bool { return subpath.Within(p, c.Path) })
}

// Covered reports whether a path is in a writable mount of a project, and a read-only one
// covers it in each worker with the former.
func Covered(c *compose.Compiled, p string) bool {
	all := openings(c)
	return slices.ContainsFunc(all, func(o Opening) bool { return subpath.Within(p, o.Source) }) &&
		!slices.ContainsFunc(all, func(o Opening) bool { return o.opens(p) })
}

// sources are those of openings, outermost ones only.
func sources(all []Opening) []string {
	var out []string
	for _, o := range all {
		out = append(out, o.Source)
	}
	return outermost(out)
}

// trail is a path with all that it leads through.
type trail struct {
	full  string
	parts []string // components, symbolic links included
	end   string   // what it leads to
	lost  bool     // it is too long to be followed, and may lead anywhere
}

// follow follows the symbolic links of a path.
func follow(full string) trail {
	t := trail{full: full}
	end, err := hostlink.Follow(full, func(part string) { t.parts = append(t.parts, part) })
	t.end, t.lost = end, err != nil
	return t
}

// access is how openings let a worker decide what a path leads to.
type access struct {
	by *Opening // nil: not at all
	// at is what is writable: the end, a directory on the way or a symbolic link.
	at string
	// links reports whether a symbolic link is.
	links bool
}

// access looks for the openings of what a path leads through. The source of one isn't
// writable itself, unless it is the end: nobody inside renames it.
func (t trail) access(all []Opening) (a access) {
	if t.lost && len(all) > 0 {
		return access{&all[0], t.full, true}
	}
	look := func(part string, end bool) {
		i := slices.IndexFunc(all, func(o Opening) bool { return o.opens(part) && (end || part != o.Source) })
		if i < 0 {
			return
		}
		if a.by == nil {
			a.by, a.at = &all[i], part
		}
		if info, err := os.Lstat(part); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			a.links = true
		}
	}
	for _, part := range t.parts {
		look(part, false)
	}
	look(t.end, true)
	return a
}

// untouched reports whether openings leave no worker a way to change a path: no mount
// makes it writable, nor anything that it leads through by symbolic links, and it has no
// other name, as a hard link has. What isn't there has none.
func untouched(all []Opening, full string) bool { return follow(full).untouched(all) }

func (t trail) untouched(all []Opening) bool {
	if len(all) == 0 || t.access(all).by != nil {
		return false
	}
	info, err := os.Lstat(t.end)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.IsDir() || info.Mode().IsRegular() && oneName(info)
}

// Way is how a worker can have written a file.
type Way struct {
	Kind WayKind
	// Workers are those that can have; none where that isn't known.
	Workers []string
	// Cover is what the lost mount was on: the file, or a directory above it. Of Through
	// it is what the links lead through.
	Cover string
}

// WayKind is the kind of a [Way].
type WayKind int

// The kinds of ways.
const (
	// Writable: a mount of the workers had the file, read-write.
	Writable WayKind = iota
	// CoverLost: a read-only mount had it, until what is there was replaced on the host.
	CoverLost
	// CoverUnknown is CoverLost where the file system doesn't tell whether it was replaced.
	CoverUnknown
	// Through: symbolic links lead to the file by way of what a mount of the workers had,
	// read-write.
	Through
	// Linked: the file has other names (hard links).
	Linked
)

// Way returns how a worker can have written a path of [Record.Redefined].
func (r *Record) Way(p string) Way {
	way := Way{Kind: Linked}
	for _, o := range r.openings() {
		if o.opens(p) {
			return Way{Kind: Writable, Workers: o.Workers}
		}
		for _, c := range o.Covers {
			if subpath.Within(p, o.Source) && subpath.Within(p, c.Path) && !c.holds() {
				way = Way{CoverLost, o.Workers, c.Path}
				if c.ID == "" || entryID(c.Path) == "" {
					way.Kind = CoverUnknown
				}
			}
		}
	}
	if a := follow(p).access(lasting(r.openings())); way.Kind == Linked && a.by != nil {
		return Way{Through, a.by.Workers, a.at}
	}
	return way
}
