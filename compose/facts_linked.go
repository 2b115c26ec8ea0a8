package compose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// LinkedMount is a repository outside of a mount whose worktree or submodule the mount
// has, as a worker gets it.
type LinkedMount struct {
	*LinkedGit
	Mount    *workshop.Mount
	Target   string // of Real
	Writable bool
	// Unusable says why git doesn't work there; Hint what helps, if something does.
	Unusable, Hint string
}

// LinkedMounts returns the repositories of a worker's mounts that aren't in them.
func (f *Facts) LinkedMounts(k *workshop.Container) (all []LinkedMount) {
	for i := range k.Mounts {
		m := &k.Mounts[i]
		sf := f.Sources[m.Source.V]
		if m.IsCopy() || !sf.Exists {
			continue
		}
		for j := range sf.Linked {
			l := LinkedMount{LinkedGit: &sf.Linked[j], Mount: m}
			l.Writable = m.GitWritable && !l.Held && l.NotWritable == ""
			if visible := l.place(f, k); !visible {
				all = append(all, l)
			}
		}
	}
	return all
}

// dir is the path of the worktree or submodule in the worker.
func (l *LinkedMount) dir() string { return path.Join(l.Mount.Target.V, l.Dir) }

// place finds where git looks for the repository in the worker. It reports whether a mount
// of the file has it there.
func (l *LinkedMount) place(f *Facts, k *workshop.Container) (visible bool) {
	dir := l.dir()
	if l.Unusable = l.LinkedGit.Unusable; l.Unusable != "" {
		return false
	}
	at := from(dir, l.GitDir)
	if l.Target = at; l.Own != "" {
		l.Target = path.Dir(path.Dir(at))
	}
	if tree := from(at, l.Worktree); l.Own == "" && tree != dir {
		l.Unusable = "git would look for the files of this submodule in " + tree
		l.Hint = "mount the repository that it is a submodule of"
		return false
	}
	for i := range k.Mounts {
		m := &k.Mounts[i]
		if subpath.Within(m.Target.V, l.Target) {
			l.Unusable, l.Hint = "its repository belongs at "+l.Target+", where "+m.Target.V+" is a mount", "choose another target"
			return false
		}
	}
	for i := range k.Caches {
		if c := &k.Caches[i]; subpath.Within(c.Target.V, l.Target) || subpath.Within(l.Target, c.Target.V) {
			l.Unusable, l.Hint = "its repository belongs at "+l.Target+", and the cache "+c.Name+" is at "+c.Target.V, "choose another target"
			return false
		}
	}
	if o := workshop.MountAt(k.Mounts, l.Target); o != nil {
		rest, _ := subpath.Below(l.Target, o.Target.V)
		if path.Join(f.Sources[o.Source.V].Real, rest) == l.Real && !o.IsCopy() {
			return true
		}
		l.Unusable, l.Hint = "its repository belongs at "+l.Target+", which is in the mount at "+o.Target.V, "choose another target"
		return false
	}
	if why := workshop.TargetRefused(l.Target); why != "" {
		l.Unusable, l.Hint = "its repository belongs at "+l.Target+", which "+why, "move the repository"
	}
	return false
}

// from is a path that is relative to a directory, or absolute.
func from(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// linked mounts the repositories of linked worktrees and submodules: read-only, or, with
// `git: rw`, what git writes.
func (m *machine) linked(s *types.ServiceConfig, a *addition, k *workshop.Container, user string) {
	mounts := map[string]types.ServiceVolumeConfig{}
	for _, l := range m.f.LinkedMounts(k) {
		at := l.Mount.At.Range
		if why := cmp.Or(l.Unusable, l.NotWritable); l.Mount.GitWritable && why != "" && l.Dir == "." {
			m.list.add("git-linked", at, fmt.Sprintf("git can't work in %s: %s", l.Mount.Source.V, why), "",
				cmp.Or(l.Hint, "remove `git: rw`, or work in a clone"))
			continue
		}
		if l.Unusable != "" {
			continue
		}
		if l.Writable {
			m.writable(l.Mount, "the repository of "+l.Mount.Source.V, SourceFacts{Real: l.Real, Dir: true, UID: l.UID, GID: l.GID, Mode: l.Mode, ACL: l.ACL}, user)
			noCleaning(s, a)
		}
		for p, v := range l.mounts(m.f) {
			have, taken := mounts[p]
			switch {
			case taken && path.Base(p) == backFile:
				continue // a worktree with two targets
			case taken && have.Source != v.Source:
				m.list.add("git-linked", at, fmt.Sprintf("%s and %s belong at the same place of the worker, %s", have.Source, v.Source, p), "", "mount one of them")
			}
			v.ReadOnly = v.ReadOnly && (have.ReadOnly || !taken)
			mounts[p] = v
		}
	}
	for _, p := range sortedKeys(mounts) {
		a.volumes = append(a.volumes, mounts[p])
	}
}

// mounts are the repository's by their targets.
func (l *LinkedMount) mounts(f *Facts) map[string]types.ServiceVolumeConfig {
	readOnly := map[string]bool{".": !l.Writable}
	if l.Writable {
		if l.Own != "" {
			readOnly[l.Own] = false
		}
		for _, p := range l.Pinned {
			readOnly[p] = true
		}
		for _, p := range l.Pinned { // as of protectedMounts
			pinWay(readOnly, p)
		}
	}
	out := map[string]types.ServiceVolumeConfig{}
	for p, ro := range readOnly {
		out[path.Join(l.Target, p)] = bind(path.Join(l.Real, p), path.Join(l.Target, p), ro)
	}
	if l.Own != "" && f.RuntimeDir != "" {
		at := path.Join(l.Target, l.Own, backFile)
		out[at] = bind(path.Join(f.RuntimeDir, l.backName()), at, true)
	}
	return out
}

// backFile is the file of a worktree's own directory that names the worktree. Git in a
// worker would take one that names a path of the host for a worktree that is gone, and
// prune it.
const backFile = "gitdir"

func (l *LinkedMount) backName() string {
	sum := sha256.Sum256([]byte(l.dir()))
	return backFile + "-" + hex.EncodeToString(sum[:6])
}

// backFiles returns those of all workers, by path below the runtime directory.
func backFiles(c *Compiled, f *Facts) (files []File) {
	for _, name := range sortedKeys(c.Roles) {
		w := c.definition(name)
		if w == nil {
			continue
		}
		for _, l := range f.LinkedMounts(&w.Container) {
			known := slices.ContainsFunc(files, func(f File) bool { return f.Path == l.backName() })
			if l.Own != "" && l.Unusable == "" && !known {
				files = append(files, File{Path: l.backName(), Mode: 0o644, Data: []byte(path.Join(l.dir(), ".git") + "\n")})
			}
		}
	}
	return files
}

// noCleaning turns off git's automatic gc: it would fail, as it writes the reflogs of other
// worktrees.
func noCleaning(s *types.ServiceConfig, a *addition) {
	addGitConfig(s.Environment, []gitSetting{{"gc.auto", "0"}}, a.setEnv)
}
