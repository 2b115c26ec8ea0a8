package files

import (
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIgnoreFile bounds a .gitignore; a longer one counts for nothing, and is
// told.
const maxIgnoreFile = 1 << 20

// above finds the rules that hold in the root of the walk, from the directories
// above it: up to that of its git repository, or, without one, up to the working
// directory. The root's path in there comes with them.
//
// What git is configured with (core.excludesFile) doesn't count, and in a linked
// worktree .git/info/exclude doesn't either.
func (w *walker) above() (*scope, string) {
	real, err := os.Readlink(procPath(int(w.root.Fd())))
	if err != nil || !path.IsAbs(real) {
		return nil, ""
	}
	top := real
	for d := real; ; d = path.Dir(d) {
		if exists(unix.AT_FDCWD, path.Join(d, ".git")) {
			top = d
			break
		}
		if d == "/" {
			if cwd, err := os.Getwd(); err == nil && strings.HasPrefix(real, slash(strings.TrimSuffix(cwd, "/"))) {
				top = cwd
			}
			break
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(real, strings.TrimSuffix(top, "/")), "/")
	if rel == "" {
		return nil, ""
	}
	var s *scope
	at := ""
	for _, name := range strings.Split(rel, "/") {
		if d, err := openDirAt(unix.AT_FDCWD, path.Join(top, at), 0); err == nil {
			s = w.scope(int(d.Fd()), s, at, at != "")
			d.Close()
		}
		at += name + "/"
	}
	return s, at
}

// scope adds the rules of a directory, whose path is prefix, to those above it.
// A repository begins anew: the rules of the one around it don't reach into it.
func (w *walker) scope(fd int, above *scope, prefix string, inner bool) *scope {
	s := above
	if repository := exists(fd, ".git"); repository {
		if inner {
			s = nil
		}
		if rules := w.rules(fd, ".git/info/exclude", prefix); rules != nil {
			s = &scope{above: s, skip: len(prefix), rules: rules}
		}
	}
	if rules := w.rules(fd, ".gitignore", prefix); rules != nil {
		s = &scope{above: s, skip: len(prefix), rules: rules}
	}
	return s
}

func exists(at int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// rules reads a file of patterns. As git does, it follows no symbolic link.
func (w *walker) rules(at int, name, prefix string) ignoring {
	fd, err := handle(at, name, unix.O_NOFOLLOW)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if st, err := regular(fd); err != nil || st.Size == 0 {
		return nil
	}
	f, err := reopen(fd, name, unix.O_RDONLY)
	if err != nil {
		w.left.add(prefix + name)
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(&source{w.ctx, f}, maxIgnoreFile+1))
	if err != nil || len(b) > maxIgnoreFile {
		w.left.add(prefix + name)
		return nil
	}
	return parseIgnore(b)
}
