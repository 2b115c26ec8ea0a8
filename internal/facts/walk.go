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
	"syscall"

	"github.com/llmdo/workshop/compose"
)

// Limits of a search through a source (B60).
const (
	maxEntries   = 2_000_000 // files and directories
	maxProtected = 128       // each is one or more mounts of a worker
	maxSpecials  = 1000      // more are not listed
)

var errTooMany = errors.New("too many files")

// walk searches a bound source for special files and, where it is writable,
// for protected directories.
func (c *collector) walk(ctx context.Context, u *use, sf *compose.SourceFacts) {
	if !sf.Dir || (u.sockets && !u.readWrite) {
		return
	}
	t := tree{ctx: ctx, root: sf.Real, skip: sf.MountPoints, lenient: c.sameUser(u)}
	if u.readWrite {
		t.opens = c.o.UID
	}
	found := protectedSearch{}
	t.visit = func(rel string, d fs.DirEntry) bool {
		if special(d.Type()) && len(sf.Specials) < maxSpecials {
			sf.Specials = append(sf.Specials, filepath.Join(sf.Real, filepath.FromSlash(rel)))
		}
		if u.readWrite && d.IsDir() {
			found.see(rel)
		}
		return true
	}
	switch err := t.walk(); {
	case errors.Is(err, errTooMany):
		c.problem("mount-too-large", u.at, fmt.Sprintf("%s has more than %d files, too many to look through (B7)", u.source, maxEntries),
			"mount the directories that the worker needs one by one, or, read-only, write `sockets: allow`")
		return
	case err != nil:
		c.problem("mount-source-unreadable", u.at, fmt.Sprintf("can't look through %s (B7): %v", u.source, err), "")
		return
	}
	slices.Sort(sf.Specials)
	if u.readWrite {
		hooks, err := hooksBelow(sf.Real, repositories(sf.Real, found.dirs))
		if err != nil {
			c.problem("mount-source-unreadable", u.at, fmt.Sprintf("can't look through the repositories of %s (B8): %v", u.source, err), "")
			return
		}
		dirs := slices.Sorted(slices.Values(append(found.dirs, hooks...)))
		if len(dirs) > maxProtected {
			c.problem("mount-too-many-protected", u.at, fmt.Sprintf("%s has %d protected directories such as %s, more than %d (B8)", u.source, len(dirs), dirs[0], maxProtected),
				"mount the directories that the worker writes to one by one")
			return
		}
		c.facts.Protected[u.source] = dirs
	}
}

// sameUser tells whether the workers that use a source run as the caller: they
// can't look into a directory then that the caller can't look into, unless they
// may change its mode (tree.opens).
func (c *collector) sameUser(u *use) bool {
	caller := strconv.Itoa(c.o.UID) + ":"
	for _, user := range c.users {
		if !strings.HasPrefix(user, caller) {
			return false
		}
	}
	return true
}

// tree is a walk over directories that never follows a symlink and never
// leaves its file system's mount.
type tree struct {
	ctx     context.Context
	root    string
	skip    []string // absolute paths that are not entered
	lenient bool     // unreadable directories are skipped,
	opens   int      // but not those of this uid, who can make them readable; 0: nobody
	seen    int
	// visit is called for every entry but the root, with its path relative to
	// the root with slashes; false: a directory is not entered.
	visit func(rel string, d fs.DirEntry) bool
}

func (t *tree) walk() error { return t.dir(".") }

// closed tells whether an unreadable directory stays so for a worker.
func (t *tree) closed(full string) bool {
	if !t.lenient || t.opens == 0 {
		return t.lenient
	}
	info, err := os.Lstat(full)
	if err != nil {
		return false
	}
	uid, _, known := owner(info)
	return known && uid != t.opens
}

func (t *tree) dir(rel string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	full := filepath.Join(t.root, filepath.FromSlash(rel))
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a worker may have put a FIFO in its place
	if err != nil {
		if (errors.Is(err, fs.ErrPermission) && t.closed(full)) || (rel != "." && errors.Is(err, fs.ErrNotExist)) {
			return nil
		}
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !(rel != "." && errors.Is(err, syscall.ENOTDIR)) {
		return err
	}
	if t.seen += len(entries); t.seen > maxEntries {
		return errTooMany
	}
	for _, d := range entries {
		child := path.Join(rel, d.Name())
		if t.visit(child, d) && d.IsDir() && !slices.Contains(t.skip, filepath.Join(full, d.Name())) {
			if err := t.dir(child); err != nil {
				return err
			}
		}
	}
	return nil
}
