package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Bounds of a search below a source (B60). A longer path, appended to source or
// target, can't be used by a program or a mount (PATH_MAX is 4096).
const (
	maxEntries = 2_000_000 // files and directories
	maxPending = 200_000   // directories found but not searched yet
	maxDepth   = 128       // each is an open descriptor
	maxPath    = 3072
)

// tree is a walk over directories by descriptors. It never follows a symlink and never
// crosses a mount point. It calls missed for what it doesn't reach.
type tree struct {
	ctx  context.Context
	root string
	skip []string // absolute paths that are not entered
	most int      // entries; 0: maxEntries
	// whole is dir.whole of the root.
	whole bool
	// visit is called for every entry, before the git layout of its directory is
	// known; listed once it is known; enter for every subdirectory before it is
	// opened.
	visit  func(d *dir, e fs.DirEntry)
	listed func(d *dir)
	enter  func(d *dir)
	// missed is called for a directory that was not fully searched.
	missed func(rel string, err error)

	seen, pending int
	over          bool
}

// dir is a directory on a walk.
type dir struct {
	file *os.File // nil before it is opened
	rel  string   // relative to the root, with slashes; "." is the root
	base string   // the root's name
	up   *dir
	deep int
	has  gitLayout
	// git: git recognises it as a git directory; inGit: it is or is inside one;
	// dotGit, packages: likewise for .git, and for installed packages.
	git, inGit, dotGit, packages bool
	// links are the symlinks in it, once it is listed; gitFile: its .git is a file.
	links   []string
	gitFile bool
	// whole: every file in it is watched. held: how a mount protects it.
	whole bool
	held  holding
}

// child returns a subdirectory of d, not opened.
func (d *dir) child(name string) *dir {
	dotGit := isDotGit(name)
	return &dir{
		rel: path.Join(d.rel, name), up: d, deep: d.deep + 1,
		git: dotGit, inGit: d.inGit || dotGit, dotGit: d.dotGit || dotGit, packages: d.packages || isPackages(name, d),
		whole: d.whole, held: d.held,
	}
}

func (d *dir) name() string {
	if d.rel == "." {
		return d.base
	}
	return path.Base(d.rel)
}

// top returns a root with the properties from its parents: git may read it because of
// those.
func top(root string) *dir {
	base, above := filepath.Base(root), filepath.Dir(root)
	dotGit := isDotGit(base)
	d := &dir{rel: ".", base: base, git: dotGit, inGit: dotGit, dotGit: dotGit}
	d.up = &dir{rel: filepath.Base(above), git: isDotGit(filepath.Base(above)) || layoutOf(above).git()}
	d.whole = wholly(base) || d.up.git && gitDirs[base]
	_, err := os.Lstat(filepath.Join(root, ".git"))
	worktree := err == nil // which may lie in a bare repository
	for up := above; ; up = filepath.Dir(up) {
		d.inGit = d.inGit || isDotGit(filepath.Base(up)) || !worktree && layoutOf(up).git()
		if up == filepath.Dir(up) {
			return d
		}
	}
}

// errBound means that a search reached a bound.
type errBound struct{ what string }

func (e errBound) Error() string { return e.what }

func (t *tree) walk() error {
	f, err := boundedfile.Open(t.root)
	if err != nil {
		return err
	}
	d := top(t.root)
	d.file, d.whole = f, d.whole || t.whole
	return t.dir(d)
}

func (t *tree) dir(d *dir) error {
	defer d.file.Close()
	below, err := t.list(d)
	if err != nil {
		return err
	}
	d.git = d.git || d.has.git()
	d.inGit = d.inGit || d.git
	if t.listed != nil {
		t.listed(d)
	}
	t.pending += len(below)
	for _, name := range below {
		t.pending--
		child := d.child(name)
		if t.over || slices.Contains(t.skip, filepath.Join(t.root, child.rel)) {
			continue
		}
		if t.enter != nil {
			t.enter(child)
		}
		if child.deep > maxDepth || len(child.rel) > maxPath {
			t.missed(child.rel, errBound{fmt.Sprintf("more than %d directories or %d characters deep", maxDepth, maxPath)})
			continue
		}
		if child.file, err = openDirAt(d.file, name); err != nil {
			if !gone(err) {
				t.missed(child.rel, err)
			}
			continue
		}
		if err := t.dir(child); err != nil {
			return err
		}
	}
	return nil
}

// list visits the entries of d and returns the names of the subdirectories. Its error
// is the context's.
func (t *tree) list(d *dir) (below []string, err error) {
	most := t.most
	if most == 0 {
		most = maxEntries
	}
	for {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := d.file.ReadDir(1024)
		for _, e := range batch {
			d.has.see(e.Name())
			t.visit(d, e)
			if e.IsDir() {
				below = append(below, e.Name())
			}
		}
		t.seen += len(batch)
		switch {
		case t.seen > most || t.pending+len(below) > maxPending:
			t.over = true
			t.missed(".", errBound{fmt.Sprintf("more than %d files; the search ended in %s", t.seen-1, ClipPath(d.rel))})
		case err == nil:
			continue
		case err != io.EOF && !gone(err):
			t.missed(d.rel, err)
		}
		slices.Sort(below)
		return below, nil
	}
}

// gone reports whether a directory was removed or replaced after it was listed.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// ClipPath shortens a long path for a message.
func ClipPath(p string) string { return clip.Text(p, 300) }
