package compose

import (
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// repository returns the repository that a writable bind is part of, outside of the
// worker's mounts: of a worktree or submodule in one that the file gives `git: rw`. Nil:
// it isn't.
func (k *checker) repository(v *types.ServiceVolumeConfig) *LinkedGit {
	w := k.c.definition(k.service)
	if w == nil || k.c.Facts == nil {
		return nil
	}
	for i := range w.Container.Mounts {
		m := &w.Container.Mounts[i]
		linked := k.c.Facts.Sources[m.Source.V].Linked
		for j := range linked {
			l := &linked[j]
			if m.GitWritable && !l.Held && l.NotWritable == "" && l.Unusable == "" && subpath.Within(v.Source, l.Real) {
				return l
			}
		}
	}
	return nil
}

// repositories checks B8 of writable repositories outside of mounts: what git runs or
// obeys is read-only and can't be moved away.
func (k *checker) repositories(s *types.ServiceConfig, at map[string]*types.ServiceVolumeConfig) {
	w := k.c.definition(s.Name)
	for i := range s.Volumes {
		v := &s.Volumes[i]
		l := k.repository(v)
		if v.Type != types.VolumeTypeBind || v.ReadOnly || l == nil || declaresWritable(w, v.Target) {
			continue
		}
		rel := strings.TrimPrefix(v.Source[len(l.Real):], "/")
		way := slices.ContainsFunc(l.Pinned, func(p string) bool { return p != rel && subpath.Within(p, rel) })
		k.must(rel == "" || rel == l.Own || way && !slices.Contains(l.Pinned, rel), "B8", "%s is writable in the repository %s", rel, l.Real)
		if rel != "" {
			continue
		}
		pinned := l.Pinned
		k.must(slices.Contains(pinned, "config") && slices.Contains(pinned, "hooks"), "B8", "hooks and config of %s are not held", l.Real)
		if l.Own != "" {
			m := at[path.Join(v.Target, l.Own, backFile)]
			k.must(m != nil && m.ReadOnly, "B8", "%s of %s is writable", backFile, l.Real)
			k.must(slices.Contains(pinned, "worktrees"), "B8", "other worktrees of %s are writable", l.Real)
		}
		for _, p := range pinned {
			m := at[path.Join(v.Target, p)]
			k.must(m != nil && m.ReadOnly && m.Source == path.Join(l.Real, p), "B8", "%s of the repository %s is writable", p, l.Real)
			for up := path.Dir(p); up != "."; up = path.Dir(up) {
				m := at[path.Join(v.Target, up)]
				k.must(m != nil && m.Source == path.Join(l.Real, up), "B8", "%s of the repository %s can be moved away", up, l.Real)
			}
		}
	}
}
