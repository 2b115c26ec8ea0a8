package facts

import (
	"cmp"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Opening is a source that a worker may write to through a mount, except for what
// other mounts of that worker cover: it reaches those by their own sources alone, and
// the kernel lets nobody inside rename or remove a mount point (EBUSY).
type Opening struct {
	Source string
	// Covered are entries of Source itself. A mount further down covers nothing,
	// unless the directories above it are mounts too: they could be renamed.
	Covered []string `json:",omitempty"`
}

// openings lists what workers may write to, each once.
func openings(c *compose.Compiled) (all []Opening) {
	for name, role := range c.Roles {
		if role != compose.RoleWorker {
			continue
		}
		mounts := c.Project.Services[name].Volumes
		for _, m := range mounts {
			if m.Type != types.VolumeTypeBind || m.ReadOnly {
				continue
			}
			o := Opening{Source: filepath.Clean(m.Source)}
			for _, inner := range mounts {
				at := path.Clean(inner.Target)
				if above := path.Clean(m.Target); at != above && path.Dir(at) == above {
					o.Covered = append(o.Covered, filepath.Join(o.Source, path.Base(at)))
				}
			}
			slices.Sort(o.Covered)
			all = append(all, o)
		}
	}
	return distinct(all)
}

// distinct leaves out openings that others of the list have.
func distinct(all []Opening) (out []Opening) {
	slices.SortFunc(all, func(x, y Opening) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(len(x.Covered), len(y.Covered)), slices.Compare(x.Covered, y.Covered))
	})
	for _, o := range all {
		has := func(other Opening) bool {
			return other.Source == o.Source && !slices.ContainsFunc(other.Covered, func(p string) bool { return !slices.Contains(o.Covered, p) })
		}
		if !slices.ContainsFunc(out, has) {
			out = append(out, o)
		}
	}
	return out
}

// opens reports whether a path is writable through the opening.
func (o Opening) opens(p string) bool {
	return subpath.Within(p, o.Source) && !slices.ContainsFunc(o.Covered, func(c string) bool { return subpath.Within(p, c) })
}

// sources are those of openings, outermost ones only.
func sources(all []Opening) []string {
	var out []string
	for _, o := range all {
		out = append(out, o.Source)
	}
	return outermost(out)
}

// unopened reports whether openings leave no worker a way to change a file or
// directory of theirs: no mount makes its path writable, and it has no other path, as
// the target of a symlink and of a hard link has.
func unopened(all []Opening, full string, info fs.FileInfo) bool {
	if len(all) == 0 || slices.ContainsFunc(all, func(o Opening) bool { return o.opens(full) }) {
		return false
	}
	return info.IsDir() || info.Mode().IsRegular() && oneName(info)
}
