package files

import (
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxRules bounds the .gitignore files that hold in one place, in bytes: each
// name is compared with each pattern. One that is beyond counts for nothing, and
// is told.
const maxRules = 256 << 10

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
	if view != nil {
		return w.aboveInView(real)
	}
	top := real
	for d := real; ; d = path.Dir(d) {
		if exists(unix.AT_FDCWD, path.Join(d, ".git")) {
			top = d
			break
		}
		if d == "/" {
			if cwd := workdir(); cwd != "" && strings.HasPrefix(real, slash(strings.TrimSuffix(cwd, "/"))) {
				top = cwd
			}
			break
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(real, strings.TrimSuffix(top, "/")), "/")
	return w.downTo(rel, unix.AT_FDCWD, top, top)
}

// downTo finds the rules of the directories from top, which is opened relative to
// a handle and shown in results, down to rel, and returns its path with a slash. Rules
// that leave out rel or a directory on the way don't hold there: it was asked for.
func (w *walker) downTo(rel string, handle int, top, shown string) (*scope, string) {
	if rel == "" {
		return nil, ""
	}
	var s *scope
	at := ""
	for _, name := range strings.Split(rel, "/") {
		if d, err := openDirAt(handle, path.Join(top, at), 0); err == nil {
			s = w.scope(int(d.Fd()), s, at, path.Join(shown, at), at != "")
			d.Close()
		}
		if s.ignored(at+name, true) {
			s = nil
		}
		at += name + "/"
	}
	return s, at
}

// scope adds the rules of a directory, whose path is prefix, and shown in results,
// to those above it. The rules of a repository don't apply to one inside of it.
func (w *walker) scope(fd int, above *scope, prefix, shown string, inner bool) *scope {
	s := above
	if repository := exists(fd, ".git"); repository {
		if inner {
			s = nil
		}
		s = w.rules(fd, ".git/info/exclude", prefix, shown, s)
	}
	return w.rules(fd, ".gitignore", prefix, shown, s)
}

func exists(at int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// rules adds a file of patterns. As git does, it follows no symbolic link.
func (w *walker) rules(at int, name, prefix, shown string, above *scope) *scope {
	fd, err := handle(at, name, unix.O_NOFOLLOW)
	if err != nil {
		return above
	}
	defer unix.Close(fd)
	if st, err := regular(fd); err != nil || st.Size == 0 {
		return above
	}
	f, err := reopen(fd, name, unix.O_RDONLY)
	if err != nil {
		w.left.add(path.Join(shown, name))
		return above
	}
	defer f.Close()
	most := maxRules
	if above != nil {
		most -= above.size
	}
	b, err := io.ReadAll(io.LimitReader(&source{w.ctx, f}, int64(most)+1))
	if err != nil || len(b) > most {
		w.left.add(path.Join(shown, name))
		return above
	}
	rules := parseIgnore(b)
	if rules == nil {
		return above
	}
	return &scope{above: above, skip: len(prefix), size: maxRules - most + len(b), rules: rules}
}
