package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// A directory whose .git is a file belongs to a repository elsewhere: it is a linked
// worktree or a submodule (gitrepository-layout(5)). Anybody may have written the file, a
// repository's author or a worker. So what it names has to name the directory back, in a
// file that is not in the checkout.

const (
	maxRepositories = 64 // of one source
	maxPinned       = 256
)

// linkedIn adds the repository of a directory on a walk.
func (c *collector) linkedIn(ctx context.Context, u *use, sf *compose.SourceFacts, d *dir) {
	if !d.gitFile || d.packages || d.inGit || len(sf.Linked) >= maxRepositories {
		return
	}
	c.linked(ctx, u, sf, d.rel, d.held != notHeld)
}

// linked adds the repository of a directory of a source, if its .git is a file that names
// one.
func (c *collector) linked(ctx context.Context, u *use, sf *compose.SourceFacts, rel string, held bool) {
	dir := filepath.Join(sf.Real, filepath.FromSlash(rel))
	file := filepath.Join(dir, ".git")
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	r, ok := readLinked(dir, rel)
	if !ok {
		return
	}
	r.Held = held
	if err = r.find(); err == nil {
		err = r.owned(info, c.o.UID)
	}
	if err == nil {
		err = c.mayMount(r)
	}
	if err == nil {
		err = r.search(ctx, u.sockets)
	}
	if err != nil {
		r.Unusable = err.Error()
	}
	sf.Linked = append(sf.Linked, r.LinkedGit)
}

// repository is a repository that is looked for.
type repository struct {
	compose.LinkedGit
	dir string // with the .git file
	own string // what that names, symlinks resolved
}

// readLinked reads the .git file of a directory, which is relative to a source.
func readLinked(dir, rel string) (r *repository, ok bool) {
	text, err := boundedfile.Read(filepath.Join(dir, ".git"), maxGitFile)
	to, ok := strings.CutPrefix(string(text), "gitdir: ")
	return &repository{dir: dir, LinkedGit: compose.LinkedGit{Dir: rel, GitDir: strings.TrimRight(to, "\r\n")}}, ok && err == nil
}

// errLinked is why a repository isn't mounted.
func errLinked(format string, args ...any) error { return fmt.Errorf(format, args...) }

// find finds the common directory and proves that it belongs to the directory.
func (r *repository) find() (err error) {
	if !filepath.IsLocal(r.Dir) && r.Dir != "." || strings.ContainsRune(r.GitDir, 0) || r.GitDir == "" {
		return errLinked("its .git file names no directory")
	}
	named := pathFrom(r.dir, r.GitDir)
	if r.own, err = filepath.EvalSymlinks(named); err != nil {
		return errLinked("its .git file names %s: %s; `git worktree repair` mends a worktree that was moved", ClipPath(named), boundedfile.Reason(err))
	}
	back := r.submodule
	if _, err := os.Lstat(filepath.Join(r.own, "commondir")); err == nil {
		back = r.worktree
	}
	if err := back(named); err != nil {
		return err
	}
	if !utf8.ValidString(r.Real) || !utf8.ValidString(r.GitDir) {
		return errLinked("the path of its repository, %q, is not UTF-8", ClipPath(r.Real))
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(r.Real, name)); err != nil || !info.IsDir() {
			return errLinked("%s is not a repository: %s is not a directory in it", ClipPath(r.Real), name)
		}
	}
	if info, err := os.Lstat(filepath.Join(r.Real, "HEAD")); err != nil || info.IsDir() {
		return errLinked("%s is not a repository: it has no HEAD", ClipPath(r.Real))
	}
	return nil
}

// worktree finds the common directory of a linked worktree. Its own directory is
// worktrees/NAME in the common one, and has the path of the .git file.
func (r *repository) worktree(named string) error {
	trees, name := filepath.Split(r.own)
	r.Real, r.Own = filepath.Dir(filepath.Clean(trees)), "worktrees/"+name
	common, err := namedBy(r.own, "commondir")
	if err != nil || common != r.Real || filepath.Base(filepath.Clean(trees)) != "worktrees" {
		return errLinked("%s is not in the worktrees of the repository that it names", ClipPath(r.own))
	}
	// git inside finds the repository by the path in the file
	if real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(named))); err != nil || real != r.Real || filepath.Base(named) != name {
		return errLinked("the path in its .git file, %s, has symbolic links: `git worktree repair` writes it anew", ClipPath(named))
	}
	text, err := boundedfile.Read(filepath.Join(r.own, "gitdir"), maxGitFile)
	if err != nil {
		return errLinked("%s: %s", ClipPath(filepath.Join(r.own, "gitdir")), boundedfile.Reason(err))
	}
	back := pathFrom(r.own, strings.TrimRight(string(text), "\r\n \t"))
	if real, err := filepath.EvalSymlinks(filepath.Dir(back)); err != nil || real != r.dir || filepath.Base(back) != ".git" {
		return errLinked("its .git file names %s, which is the worktree of %s; if it was moved, run `git worktree repair` in it", ClipPath(r.own), ClipPath(filepath.Dir(back)))
	}
	return nil
}

// submodule proves that a repository is that of a submodule: core.worktree leads back.
func (r *repository) submodule(string) error {
	r.Real = r.own
	text, err := readConfig(filepath.Join(r.own, "config"))
	if err != nil {
		return errLinked("%s has no configuration that can be read: %s", ClipPath(r.own), boundedfile.Reason(err))
	}
	for v := range gitVariables(text) {
		if v.section == "core" && v.sub == "" && v.name == "worktree" {
			r.Worktree = v.value
		}
	}
	real, err := filepath.EvalSymlinks(pathFrom(r.own, r.Worktree))
	if r.Worktree == "" || err != nil || real != r.dir {
		return errLinked("its .git file names %s, whose core.worktree is not this directory", ClipPath(r.own))
	}
	return nil
}

// namedBy returns the directory that a file of a git directory names.
func namedBy(dir, file string) (string, error) {
	text, err := boundedfile.Read(filepath.Join(dir, file), maxGitFile)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(pathFrom(dir, strings.TrimRight(string(text), "\r\n")))
}

// owned refuses a repository of somebody else.
func (r *repository) owned(file fs.FileInfo, caller int) error {
	uid, _, known := fileowner.Of(file)
	for _, p := range []string{r.own, r.Real} {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		id, gid, _ := fileowner.Of(info)
		if known && (id != uid || caller > 0 && id != caller) {
			return errLinked("its repository %s belongs to uid %d", ClipPath(r.Real), id)
		}
		r.UID, r.GID, r.Mode, r.ACL = id, gid, uint32(info.Mode().Perm()), hasACL(p)
	}
	return nil
}

// mayMount applies what is demanded of every source (B7).
func (c *collector) mayMount(r *repository) error {
	why := c.facts.Refusal(r.Real)
	if why == "" {
		why = c.names.why(r.Real)
	}
	if why != "" {
		return errLinked("its repository can't be mounted: %s %s (B7)", ClipPath(r.Real), why)
	}
	mounted, err := mountPoints()
	if points := below(mounted, r.Real); err != nil || len(points) > 0 {
		return errors.Join(err, errLinked("a file system is mounted in its repository: %s (B7)", strings.Join(points, ", ")))
	}
	return nil
}
