package facts

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// projectLinks looks for symlinks with watched names in the parts of the project that
// workers can't write to: with `.envrc -> out/e` a worker that may write to `out`
// writes the project's .envrc. The workshop's own files may be below a link, wherever
// they are.
func (w *watcher) projectLinks() error {
	if w.project == "" || len(w.roots) == 0 {
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(w.own)) {
		w.links = append(w.links, link{path: file, outside: true})
	}
	if w.writable(w.project) {
		return nil
	}
	t := tree{ctx: w.ctx, root: w.project, skip: w.roots, most: w.most}
	t.visit = func(d *dir, e fs.DirEntry) {
		whole := d.dotGit || d.whole || wholly(e.Name()) || dotted(e.Name())
		if e.Type()&fs.ModeSymlink != 0 && (d.dotGit || !d.packages && whole || watched(d, e.Name())) {
			w.links = append(w.links, link{filepath.Join(w.project, filepath.FromSlash(d.rel), e.Name()), whole, true})
		}
	}
	t.enter = func(d *dir) { d.whole = d.whole || wholly(d.name()) && !d.packages && !d.dotGit }
	t.missed = func(rel string, err error) {
		if errors.Is(err, fs.ErrPermission) {
			return // the user's programs can't reach it either
		}
		w.put(filepath.Join(w.project, filepath.FromSlash(rel)), unchecked+boundedfile.Reason(err))
	}
	err := t.walk()
	w.most = max(w.most-t.seen, 1)
	return err
}

// dotted reports whether some files in a directory of this name count; a link of the
// name counts as a whole.
func dotted(name string) bool {
	return strings.HasPrefix(name, ".") && watchedBelow[name] != nil
}

// leadsTo is the snapshot's text for a path with links that workers may change, or that
// lead through what they may change.
const leadsTo = "leads to "

// through adds the target of a path of the project, if workers may write to it or to
// a directory in its path.
func (w *watcher) through(l link) error {
	if late, err := w.late(); late {
		return err
	}
	if w.writable(l.path) && !w.own[l.path] { // found there
		return nil
	}
	writable := false
	end, err := hostlink.Follow(l.path, func(part string) { writable = writable || w.writable(part) })
	if err != nil {
		w.put(l.path, "leads to an unresolvable path: "+err.Error())
		return nil
	}
	if writable && end != l.path && w.s[l.path] == "" {
		w.put(l.path, leadsTo+end)
	}
	info, err := os.Lstat(end)
	switch {
	case err != nil: // a worker may still create it
		return nil
	case !info.IsDir():
		if w.writable(end) {
			w.path(end)
		}
		return nil
	case !l.whole:
		return nil
	}
	for _, root := range append([]string{end}, w.roots...) {
		if subpath.Within(root, end) && w.writable(root) && !w.whole[root] {
			w.whole[root] = true
			w.put(root, isDir)
			if err := w.walk(root, true); err != nil {
				return err
			}
		}
	}
	return nil
}
