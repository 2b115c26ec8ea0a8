package app

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// maxPlaces are named at once.
const maxPlaces = 3

// readOnlyPlace is a part of a worker that a program tried to write, in vain.
type readOnlyPlace struct {
	path  string // the mount, or the protected directory in one
	image bool   // it belongs to the image
	grant bool   // it says what workers are granted
	git   bool   // it is a repository's, in a mount that is read-write
	opens string // the mounts that make it writable, as the file has them; empty: none do
}

// readOnlyPlaces finds the places of paths that couldn't be written, each once.
// The paths were written by a worker; relative ones are below dir, and that, if it is
// relative or empty, below the worker's directory.
func (s *Source) readOnlyPlaces(w *workshop.Worker, dir string, paths []string) (places []readOnlyPlace) {
	for _, p := range paths {
		place, ok := s.placeOf(w, pathIn(w, dir, p))
		if ok && !slices.ContainsFunc(places, func(x readOnlyPlace) bool { return x.path == place.path }) {
			places = append(places, place)
		}
	}
	return places
}

// pathIn is a path of a worker as a program wrote it that ran in a directory; a
// relative or empty one is below the worker's own.
func pathIn(w *workshop.Worker, dir, p string) string {
	switch {
	case path.IsAbs(p):
	case path.IsAbs(dir):
		p = path.Join(dir, p)
	default:
		p = path.Join("/", w.Container.Workdir.V, dir, p)
	}
	return path.Clean(p)
}

// notMade are the directories that a program couldn't make in a place that is
// read-only, of which it says that what they would be in isn't there, although it is.
func (r *Running) notMade(ctx context.Context, s *Source, w *workshop.Worker, dir string, signs *Signs) (paths []string) {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	for _, p := range signs.notMade() {
		p = pathIn(w, dir, p)
		if _, readOnly := s.placeOf(w, p); !readOnly {
			continue
		}
		if isDir(ctx, r, w.Name, path.Dir(p)) {
			paths = append(paths, p)
		}
	}
	return paths
}

// ofKernel are the directories of a worker that are neither the image's nor mounts.
var ofKernel = []string{"/dev", "/proc", "/sys", "/run"}

// placeOf is the place of a path that couldn't be written; not ok where the
// worker may write there.
func (s *Source) placeOf(w *workshop.Worker, p string) (readOnlyPlace, bool) {
	m := workshop.MountAt(w.Container.Mounts, p)
	switch {
	case m == nil:
		if place, ok := repositoryPlace(w, p); ok {
			return place, true
		}
		if own, _ := workshop.TmpfsAt(p); own != "" || slices.ContainsFunc(ofKernel, func(dir string) bool { return subpath.Within(p, dir) }) {
			return readOnlyPlace{}, false
		}
		return readOnlyPlace{path: shownPlace(p), image: true}, true
	case m.IsCopy():
		return readOnlyPlace{path: m.Target.V}, true
	case !m.ReadWrite:
		return s.placeIn(w.Container.Mounts, m, p), true
	}
	at := m.Target.V
	for part := range strings.SplitSeq(strings.TrimPrefix(p[len(strings.TrimSuffix(at, "/")):], "/"), "/") {
		at = path.Join(at, part)
		if !compose.IsProtected(part) {
			continue
		}
		switch {
		case part != ".git":
			return readOnlyPlace{path: shownPlace(at)}, true
		case !m.GitWritable:
			return readOnlyPlace{path: shownPlace(at), git: true, opens: writableEntry(*m, true)}, true
		case subpath.Within(p, path.Join(at, "hooks")):
			return readOnlyPlace{path: shownPlace(path.Join(at, "hooks"))}, true
		}
	}
	return readOnlyPlace{}, false
}

// repositoryPlace is the place of a path in the repository of a linked worktree, which is
// at its path of the host.
func repositoryPlace(w *workshop.Worker, p string) (readOnlyPlace, bool) {
	mounts := w.Container.Mounts
	m := workshop.MountAt(mounts, path.Clean(w.Container.Workdir.V))
	if m == nil && len(mounts) > 0 {
		m = &mounts[0]
	}
	at, _, ok := strings.Cut(p, "/.git/")
	if at += "/.git"; !ok {
		at, _, ok = strings.Cut(p, "/worktrees/") // of a bare repository
	}
	switch {
	case !ok || m == nil || m.IsCopy():
		return readOnlyPlace{}, false
	case m.GitWritable:
		return readOnlyPlace{path: shownPlace(p)}, true
	}
	return readOnlyPlace{path: shownPlace(at), git: true, opens: writableEntry(*m, true)}, true
}

// placeIn is the place of a path in a read-only mount. What says what workers are
// granted stays read-only.
func (s *Source) placeIn(mounts []workshop.Mount, m *workshop.Mount, p string) readOnlyPlace {
	root := filepath.ToSlash(s.Root())
	source := m.Source.V
	if !path.IsAbs(source) {
		source = path.Join(root, source)
	}
	tried, _ := subpath.Below(p, m.Target.V)
	var keep []string
	for _, name := range s.Workshop.GrantingFiles() {
		file := path.Join(root, name)
		target := m.Target.V // where the file is, or the directory that is in it
		below, inside := subpath.Below(file, source)
		if inside {
			target = path.Join(target, below)
		}
		if subpath.Within(path.Join(source, tried), file) {
			return readOnlyPlace{path: target, grant: true}
		}
		if inside && m.Exposes(mounts, target) {
			keep = append(keep, Printable("`./"+name+":"+target+":ro`"))
		}
	}
	opens := writableEntry(*m, false)
	if len(keep) > 0 {
		opens += " and add " + strings.Join(keep, ", ")
	}
	return readOnlyPlace{path: m.Target.V, opens: opens}
}

// writableEntry is a mount as the file has it, but for writing there, in backquotes.
func writableEntry(m workshop.Mount, git bool) string {
	m.ReadWrite, m.GitWritable = true, m.GitWritable || git
	return "`" + Printable(m.Entry()) + "`"
}

// maxPlace bytes of a path are named.
const maxPlace = 200

// shownPlace is as much of a path that a worker wrote as is made of the characters
// of ordinary names: it must not speak to the reader.
func shownPlace(p string) string {
	out := "/"
	for part := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if strings.Trim(part, placeChars) != "" || len(out)+len(part) > maxPlace {
			break
		}
		out = path.Join(out, part)
	}
	return out
}

const placeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@~"

// toldReadOnly is what a model is told of places; empty for none.
func toldReadOnly(places []readOnlyPlace) string {
	var mounted, image []string
	for _, x := range places {
		switch {
		case len(mounted)+len(image) == maxPlaces:
		case x.image:
			image = append(image, x.path)
		default:
			mounted = append(mounted, x.path)
		}
	}
	var told []string
	if len(mounted) > 0 {
		told = append(told, "Read-only in this workshop: "+strings.Join(mounted, ", ")+". Don't try another way, tell the person.")
	}
	if len(image) > 0 {
		told = append(told, "Read-only, as all of the image: "+strings.Join(image, ", ")+". The worker can write to its read-write mounts, /tmp, /scratch and its home directory.")
	}
	return strings.Join(told, "\n")
}

// hintReadOnly is what a person is told of places: the first one that can be
// opened, else the first; empty for none.
func hintReadOnly(places []readOnlyPlace, file string) string {
	if len(places) == 0 {
		return ""
	}
	x := places[0]
	if i := slices.IndexFunc(places, func(x readOnlyPlace) bool { return x.opens != "" }); i >= 0 {
		x = places[i]
	}
	switch {
	case x.image:
		return x.path + " belongs to the image, which is read-only; the worker can write to its read-write mounts, /tmp, /scratch and its home directory"
	case x.grant:
		return x.path + " is read-only on purpose, as it says what workers are granted: edit it yourself"
	case x.opens == "":
		return x.path + " is always read-only for workers"
	}
	if x.git {
		return x.path + " is read-only: commit on this machine, after a look at what changed; to let the worker commit, write its mount as " + x.opens + " in " + file + ", then run `workshop up`"
	}
	return x.path + " is read-only: to let the worker write there, write its mount as " + x.opens + " in " + file + ", then run `workshop up`"
}
