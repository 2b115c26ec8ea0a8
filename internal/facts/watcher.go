package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// Bounds of a snapshot (B60).
const (
	maxWatched = 50_000   // files and directories in it
	maxNames   = 16 << 20 // bytes of their names: it is kept in memory
	maxLinked  = 10_000   // entries of a directory named by a link or a setting
)

// maxFollowing bounds the time for following links and names in configuration after
// the search of the tree: each may lead to others, by any path.
const maxFollowing = 10 * time.Second

// watcher takes one snapshot.
type watcher struct {
	ctx context.Context
	own map[string]bool // the workshop's files
	// project is a directory whose links may lead programs into roots; "" for none.
	project string
	roots   []string // writable from inside
	home    string
	lookup  func(string) (string, bool) // environment
	most    int                         // entries, of all walks
	keeps   int                         // names, at most

	s     Snapshot
	left  int64           // bytes that may still be hashed
	bytes int             // of names in s
	full  bool            // a bound of s was reached
	until time.Time       // end of following links and names
	links []link          // found on a walk, to be followed after it
	whole map[string]bool // directories that were followed
	git   gitNames
}

// link is a symlink with a name by which programs find a file or a directory.
type link struct {
	path  string
	whole bool // a directory that it leads to counts as a whole
	// outside: it is in a part of the project to which no worker writes, or one of the
	// workshop's own files.
	outside bool
}

func (w *watcher) take() (Snapshot, error) {
	w.s, w.whole, w.left = Snapshot{}, map[string]bool{}, maxHashedAll
	for _, root := range w.roots {
		info, err := os.Stat(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			w.path(root)
		} else if err := w.walk(root, false); err != nil {
			return nil, err
		}
	}
	if err := w.projectLinks(); err != nil {
		return nil, err
	}
	if w.until.IsZero() {
		w.until = time.Now().Add(maxFollowing)
	}
	for len(w.links) > 0 { // links in a followed directory are added once
		l := w.links[0]
		w.links = w.links[1:]
		follow := w.follow
		if l.outside {
			follow = w.through
		}
		if err := follow(l); err != nil {
			return nil, err
		}
	}
	return w.s, w.names()
}

// walk searches a directory. With whole every file in it counts, and the bounds are
// smaller.
func (w *watcher) walk(root string, whole bool) error {
	t := tree{ctx: w.ctx, root: root, whole: whole, most: w.most}
	if whole {
		t.most = min(w.most, maxLinked)
	}
	t.visit = func(d *dir, e fs.DirEntry) {
		if e.Type()&fs.ModeSymlink != 0 && len(d.links) <= maxWatched { // more are not kept
			d.links = append(d.links, e.Name())
		}
		switch {
		case e.IsDir():
			if compose.IsProtected(e.Name()) && !d.packages && !d.dotGit || isDotGit(e.Name()) {
				w.put(filepath.Join(root, d.rel, e.Name()), isDir)
			}
		case watched(d, e.Name()) || w.own[filepath.Join(root, d.rel, e.Name())]:
			w.file(root, d, e.Name())
		case e.Type()&fs.ModeSymlink != 0 && wholly(e.Name()) && !d.packages && !d.dotGit:
			w.file(root, d, e.Name())
		}
	}
	t.enter = func(d *dir) {
		d.whole = d.whole || d.isWhole()
	}
	t.listed = func(d *dir) {
		if d.git {
			w.gitDir(root, d)
		}
		if d.inGit {
			for _, name := range d.links {
				w.gitLink(d.file, filepath.Join(root, filepath.FromSlash(d.rel), name))
			}
		}
		d.links = nil
	}
	t.missed = func(rel string, err error) {
		full := filepath.Join(root, filepath.FromSlash(rel))
		if errors.Is(err, fs.ErrPermission) {
			w.put(full, unreadable)
			return
		}
		w.put(full, unchecked+boundedfile.Reason(err))
	}
	err := t.walk()
	w.most = max(w.most-t.seen, 1)
	return err
}

// gitDir adds the files that git reads of a git directory.
func (w *watcher) gitDir(root string, d *dir) {
	full := filepath.Join(root, filepath.FromSlash(d.rel))
	if d.has.opens() {
		w.put(full, isDir)
	}
	if d.has.opens() || isDotGit(filepath.Base(full)) {
		w.index(full)
	}
	for _, name := range gitFiles {
		w.file(root, d, name)
	}
	for name := range gitDirs {
		w.linkIn(root, d, name)
	}
	for name := range gitFilesBelow {
		w.linkIn(root, d, name)
	}
	if w.git.dirs = append(w.git.dirs, full); len(w.git.dirs) > maxConfigs {
		w.git.dirs = w.git.dirs[:maxConfigs]
		w.put(root, fmt.Sprintf("%smore than %d git directories", unchecked, maxConfigs))
	}
}

// linkIn adds a link in place of a directory.
func (w *watcher) linkIn(root string, d *dir, name string) {
	if info, err := lstatAt(d.file, name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		w.file(root, d, name)
	}
}

// file adds a file of an open directory.
func (w *watcher) file(root string, d *dir, name string) {
	w.digest(d.file, filepath.Join(root, filepath.FromSlash(d.rel), name), d.whole || d.git || wholly(name))
}

// naming is what the snapshot has of a file that is added since configuration names it.
func (w *watcher) naming() string {
	if w.git.by == "" {
		return ""
	}
	return byConfig + w.git.by
}

// path adds a file by its path.
func (w *watcher) path(full string) {
	dir, err := boundedfile.Open(filepath.Dir(full))
	if err != nil {
		if !gone(err) {
			w.put(full, unchecked+boundedfile.Reason(err))
		}
		return
	}
	defer dir.Close()
	w.digest(dir, full, false)
}

// digest adds a file of a directory, and queues a link to be followed.
func (w *watcher) digest(dir *os.File, full string, whole bool) {
	if w.full || w.s[full] != "" {
		return
	}
	digest, err := digestAt(dir, filepath.Base(full), &w.left)
	switch {
	case err != nil:
		w.put(full, unchecked+boundedfile.Reason(err))
	case digest != "":
		w.put(full, digest+w.naming())
		if info, err := lstatAt(dir, filepath.Base(full)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			w.links = append(w.links, link{path: full, whole: whole})
		}
		if filepath.Base(full) == ".git" {
			w.git.files = append(w.git.files, full)
		}
	}
}

// follow adds the target of a link, if a worker can write to it.
func (w *watcher) follow(l link) error {
	if late, err := w.late(); late {
		return err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return nil // programs can't reach it either: the kernel follows 40 links, EvalSymlinks 255
	}
	real, err := filepath.EvalSymlinks(l.path)
	switch {
	case err != nil:
	case !w.writable(real): // no worker changes anything there
		w.led(l.path, real)
	case !info.IsDir():
		w.path(real)
	case l.whole && !w.whole[real]:
		w.whole[real] = true
		w.put(real, isDir+w.naming())
		return w.walk(real, true)
	}
	return nil
}

// led adds where a path leads, if workers can change that: by a directory or link on the
// way to a file that they can't write.
func (w *watcher) led(path, end string) {
	changeable := false
	_, err := hostlink.Follow(path, func(part string) {
		changeable = changeable || part != path && w.writable(part) && !slices.Contains(w.roots, part)
	})
	if digest := w.s.digest(path); err == nil && changeable && !strings.Contains(digest, leadsTo) {
		w.put(path, strings.TrimSpace(digest+" "+leadsTo+end)+w.naming())
	}
}

// gitLink adds a link of a git directory, unless its name counts: git writes through
// it, and its target doesn't count.
func (w *watcher) gitLink(dir *os.File, full string) {
	if w.s[full] != "" {
		return
	}
	w.digest(dir, full, false)
	if n := len(w.links); n > 0 && w.links[n-1].path == full {
		w.links = w.links[:n-1]
		w.git.links = append(w.git.links, full)
	}
}

// leadsOut is the snapshot's text for a link in a git directory by which git would
// write where no worker can.
const leadsOut = " leads out to "

// late reports whether the time for following is over. If ctx has ended, it returns
// its error.
func (w *watcher) late() (bool, error) {
	if err := w.ctx.Err(); err != nil {
		return true, err
	}
	if time.Now().Before(w.until) {
		return false, nil
	}
	for _, root := range w.roots {
		w.s[root] = fmt.Sprintf("%sfollowing links and names in git's configuration took more than %s", unchecked, maxFollowing)
	}
	return true, nil
}

func (w *watcher) writable(path string) bool { return within(path, w.roots) }

func (w *watcher) put(path, what string) {
	switch {
	case w.full:
	case len(w.s) >= w.keeps || w.bytes > maxNames:
		w.full = true
		for _, root := range w.roots {
			w.s[root] = fmt.Sprintf("%smore than %d watched files, or %d bytes of their names", unchecked, w.keeps, maxNames)
		}
	default:
		w.bytes += len(path) + len(w.git.by)
		w.s[path] = what
	}
}
