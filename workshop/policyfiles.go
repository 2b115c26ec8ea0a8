package workshop

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// writablePolicy warns of mounts through which a worker can change workshop.yaml
// or the files of workers, which decide what it is granted at the next `up`.
// `ps` and `down` report a change and `up` needs a yes to it (B8), but nothing prevents
// it. There is one warning for a line of the file.
func writablePolicy(w *Workshop, l *locator, root string, work *effort, p *problems) {
	lists := mountLists(w)
	if !slices.ContainsFunc(lists, func(list *mountList) bool {
		return slices.ContainsFunc(list.mounts, func(m Mount) bool { return m.ReadWrite })
	}) {
		return
	}
	granting := grantingPaths(w, l, root, work)
	warned := map[diag.Range]bool{}
	for _, list := range lists {
		for i := range list.mounts {
			m := &list.mounts[i]
			if !m.ReadWrite || warned[m.At.Range] {
				continue
			}
			source, ok := l.hostPath(m.Source.V, root)
			if !ok {
				continue
			}
			var exposed []string
			for _, file := range granting {
				if !work.spend(1 + len(list.mounts)) {
					return
				}
				below, inside := subpath.Below(file.path, source)
				if target := path.Join(m.Target.V, below); inside && m.Exposes(list.mounts, target) {
					exposed = append(exposed, fmt.Sprintf("./%s:%s:ro", l.shown(file.name), target))
				}
			}
			if len(exposed) > 0 {
				warned[m.At.Range] = true
				p.add(policyWarning(m, exposed))
			}
		}
	}
}

// grantingPath is a path of the host by which a file grants.
type grantingPath struct{ name, path string }

// grantingPaths are the paths of granting files, and what symbolic links lead to from
// them; none if the work is too much.
func grantingPaths(w *Workshop, l *locator, root string, work *effort) (out []grantingPath) {
	seen := map[string]bool{}
	add := func(name, p string) {
		if !seen[p] {
			seen[p], out = true, append(out, grantingPath{name, p})
		}
	}
	names := w.GrantingFiles()
	for _, name := range names {
		add(name, path.Join("/", root, name))
	}
	for i := range w.Workers {
		if file := w.Workers[i].File; file != "" && w.Workers[i].From == "" {
			names = append(names, file)
		}
	}
	for _, name := range names {
		if !work.spend(300 * (1 + strings.Count(name, "/"))) { // a system call costs as much as hundreds of comparisons
			return nil
		}
		end, p := followLinks(l.fsys, root, name), path.Join("/", root, name)
		switch {
		case end.abs != "":
			p = end.abs
		case end.inside != "":
			p = path.Join("/", root, end.inside)
		}
		if !seen[path.Dir(p)] { // else with its directory
			add(name, p)
		}
	}
	return out
}

// Exposes reports whether a path of the container can be changed through the mount,
// if that is read-write, and not through another of the container's.
func (m *Mount) Exposes(mounts []Mount, target string) bool {
	below, ok := subpath.Below(target, m.Target.V)
	return ok && protectedIn(below) == "" && MountAt(mounts, target) == m
}

// GrantingFiles are workshop.yaml and the files of the workers, by their
// directories where they have one of their own; paths of the fs.FS.
func (w *Workshop) GrantingFiles() []string {
	out := []string{w.File}
	for i := range w.Workers {
		if w.Workers[i].From != "" {
			continue
		}
		file := w.Workers[i].File
		if dir := path.Dir(file); dir != path.Dir(w.File) {
			file = dir
		}
		if file != "" {
			out = append(out, file)
		}
	}
	slices.Sort(out[1:])
	return slices.Compact(out)
}

// hostPath is the path of the host that a source leads to; without the root of the
// fs.FS paths begin at its root. It is false for one that can't be told.
func (l *locator) hostPath(source, root string) (string, bool) {
	if path.IsAbs(source) {
		return path.Clean(source), true
	}
	end := followLinks(l.fsys, root, path.Join(l.dir, source))
	if end.abs != "" {
		return end.abs, true
	}
	return path.Join("/", root, end.inside), end.inside != ""
}

// MountAt returns the mount that an absolute path of the container is in, the
// innermost one; nil: none.
func MountAt(mounts []Mount, at string) *Mount {
	var in *Mount
	for i := range mounts {
		m := &mounts[i]
		if subpath.Within(at, m.Target.V) && (in == nil || len(m.Target.V) > len(in.Target.V)) {
			in = m
		}
	}
	return in
}

// policyWarning has the mounts that make the files read-only.
func policyWarning(m *Mount, readOnly []string) diag.Diagnostic {
	var names []string
	d := diag.Diagnostic{Severity: diag.Warning, Code: "writable-policy", Range: m.At.Range,
		Hint: "mount what workers don't change read-only as well:\n- " + strings.Join(readOnly, "\n- ")}
	for _, mount := range readOnly {
		name, target, _ := strings.Cut(strings.TrimSuffix(mount, ":ro"), ":")
		names = append(names, name)
		if target == m.Target.V {
			d.Hint = "mount it read-only: " + mount
		}
	}
	d.Summary = fmt.Sprintf("workers may change %s, and so what they are granted at the next `up`", someOf(names))
	d.Detail = "`ps` and `down` report a change, and `up` needs a yes to it; nothing prevents it (B8)."
	return d
}
