package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

const (
	maxProtected = 128  // each is a mount of a worker,
	maxPins      = 1024 // and so is each directory in the path to it
	maxSpecials  = 1000 // more are not listed
)

// CodeNotChecked is the code of the warning that a source was not fully
// searched.
const CodeNotChecked = "mount-not-fully-checked"

// search searches a bound source for special files and, if it is writable, for
// protected directories.
func (c *collector) search(ctx context.Context, u *use, sf *compose.SourceFacts) {
	if u.readWrite {
		sf.Git, sf.GitHooks = around(c.facts.ProjectDir, sf.Real)
	}
	if !sf.Dir || c.o.SkipContents {
		return
	}
	if u.sockets && !u.readWrite {
		c.linked(ctx, u, sf, ".", false)
		return
	}
	var missed []string
	t := tree{ctx: ctx, root: sf.Real, skip: sf.MountPoints}
	t.visit = func(d *dir, e fs.DirEntry) {
		d.gitFile = d.gitFile || e.Name() == ".git" && e.Type().IsRegular()
		if special(e.Type()) && len(sf.Specials) < maxSpecials {
			sf.Specials = append(sf.Specials, filepath.Join(sf.Real, filepath.FromSlash(d.rel), e.Name()))
		}
	}
	t.missed = func(rel string, err error) {
		full := filepath.Join(sf.Real, filepath.FromSlash(rel))
		if !errors.Is(err, fs.ErrPermission) || !c.closed(u, full) {
			missed = append(missed, ClipPath(full)+" ("+boundedfile.Reason(err)+")")
		}
	}
	s := protectedSearch{missed: t.missed}
	if u.readWrite {
		s.root = sf.Git
		t.enter = s.enter
	}
	t.listed = func(d *dir) {
		if u.readWrite {
			s.listed(d)
		}
		c.linkedIn(ctx, u, sf, d)
	}
	if err := t.walk(); err != nil {
		c.problem("mount-source-unreadable", u.at, fmt.Sprintf("can't read %s (B7): %v", u.source, err), "")
		return
	}
	slices.Sort(sf.Specials)
	if len(missed) > 0 {
		more := ""
		if n := len(missed) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		c.list = append(c.list, diag.Diagnostic{
			Severity: diag.Warning, Code: CodeNotChecked, Range: u.at,
			Summary: fmt.Sprintf("%s is not fully checked (B7, B8): %s", u.source, missed[0]+more),
			Detail:  "Directories such as .git are not protected there, and sockets not seen.",
			Hint:    "remove it, or mount the directories that the worker needs one by one; `up --strict` refuses",
		})
	}
	if !u.readWrite {
		return
	}
	sf.Git = s.root
	if n := s.mounts(); len(s.found) > maxProtected || n > maxPins {
		c.problem("mount-too-many-protected", u.at,
			fmt.Sprintf("%s has %d directories to protect such as %s, at most %d are possible, by %d mounts (B8)", u.source, len(s.found), ClipPath(s.found[0].Path), maxProtected, maxPins),
			"remove those that a worker made, or mount the directories that the worker writes to one by one")
		return
	}
	sortfunc.Stable(s.found, func(a, b compose.Protected) int { return strings.Compare(a.Path, b.Path) })
	c.facts.Protected[u.source] = s.found
}

// closed reports whether a directory that the caller can't read is closed to the worker
// too. That is so for a worker with the caller's uid, unless it may write there and
// owns the directory, and so could make it readable.
func (c *collector) closed(u *use, full string) bool {
	caller := strconv.Itoa(c.o.UID) + ":"
	for _, user := range c.users {
		if !strings.HasPrefix(user, caller) {
			return false
		}
	}
	if !u.readWrite || c.o.UID == 0 {
		return true
	}
	info, err := os.Lstat(full)
	if err != nil {
		return false
	}
	uid, _, known := fileowner.Of(info)
	return known && uid != c.o.UID
}

// holding is how a mount protects a directory and everything below it (B8).
type holding int

const (
	notHeld holding = iota
	heldWhole
	heldGit // writable with `git: rw`, apart from hooks
)

// protectedSearch collects protected directories, outermost ones only, the hooks of git
// directories among them, which `git: rw` protects, and files called .git.
type protectedSearch struct {
	found  []compose.Protected
	root   bool // the source itself is or is inside a git directory
	missed func(rel string, err error)
}

// add adds a directory, unless its path isn't UTF-8: engines get mounts as JSON, and
// would mount another directory.
func (s *protectedSearch) add(p compose.Protected) {
	if !utf8.ValidString(p.Path) {
		s.missed(p.Path, errBound{"it can't be protected by a mount: its path is not UTF-8"})
		return
	}
	s.found = append(s.found, p)
}

// enter finds directories by their names: they are protected even if they can't be
// opened.
func (s *protectedSearch) enter(d *dir) {
	if d.held == notHeld && !d.packages && compose.IsProtected(d.name()) {
		s.hold(d)
	}
}

// listed finds git directories by their layout, and hooks.
func (s *protectedSearch) listed(d *dir) {
	git := d.git && (d.has.opens() || isDotGit(d.name()))
	if d.rel == "." {
		if s.root = s.root || git; git {
			d.held = heldGit
		}
	} else if git && d.held == notHeld && !d.packages {
		s.hold(d)
	}
	if d.held == notHeld && !d.packages {
		// A linked worktree's or submodule's: git obeys the configuration of the
		// directory that it names.
		if info, err := lstatAt(d.file, ".git"); err == nil && info.Mode().IsRegular() {
			s.add(compose.Protected{Path: path.Join(d.rel, ".git")})
		}
	}
	if d.git && d.held == heldGit {
		if info, err := lstatAt(d.file, "hooks"); err == nil && info.IsDir() {
			s.add(compose.Protected{Path: path.Join(d.rel, "hooks"), Kind: compose.GitHooks})
		}
	}
}

// around reports whether a source is inside a git directory, and whether it is or is
// inside the hooks of one. Checkouts and bare repositories may be anywhere: outside
// the project a directory counts if it is called .git, and hooks always do.
func around(project, real string) (git, hooks bool) {
	_, own := subpath.Below(real, project)
	for at, up := real, filepath.Dir(real); up != at; at, up = up, filepath.Dir(up) {
		dotGit := isDotGit(filepath.Base(up))
		if !dotGit && !layoutOf(up).opens() {
			continue
		}
		_, below := subpath.Below(up, project)
		git = git || below || dotGit && !own
		hooks = hooks || strings.EqualFold(filepath.Base(at), "hooks")
	}
	return git, hooks
}

func (s *protectedSearch) hold(d *dir) {
	p := compose.Protected{Path: d.rel}
	d.held = heldWhole
	if d.git {
		p.Kind, d.held = compose.GitDir, heldGit
	}
	s.add(p)
}

// mounts counts the directories in the paths to those found.
func (s *protectedSearch) mounts() int {
	way := map[string]bool{}
	for _, p := range s.found {
		for up := p.Path; up != "." && !way[up]; up = path.Dir(up) {
			way[up] = true
		}
	}
	return len(way)
}
