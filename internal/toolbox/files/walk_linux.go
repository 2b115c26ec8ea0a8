package files

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHeld names are in memory at a time, of all directories that are open.
const maxHeld = 200_000

// walker goes through what is below a directory, in order of the paths' bytes.
// It follows no symbolic link.
type walker struct {
	ctx     context.Context
	root    *os.File
	path    string // of root, as it was given; for the view
	base    string // of root, in results
	prefix  string // path of root in its repository, with a slash at its end; for the ignore rules
	glob    glob
	hidden  bool
	ignored bool

	held int
	over bool // a directory had more names than can be held
	// left can't be read, skipped are dependencies and caches, and excluded is what
	// rules of .gitignore are about.
	left, skipped, excluded paths
}

type entry struct {
	name string
	kind os.FileMode // type bits
}

// order is that of the paths' bytes: a directory comes where what is in it does.
func order(a, b entry) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(a.at(n)) - int(b.at(n))
}

func (e entry) at(i int) byte {
	switch {
	case i < len(e.name):
		return e.name[i]
	case e.kind.IsDir():
		return '/'
	}
	return 0
}

// files calls visit for everything but directories.
func (w *walker) files(visit func(path string, e entry) error) error {
	var s *scope
	if !w.ignored {
		s, w.prefix = w.above()
	}
	err := w.walk("", s, visit)
	if err == errStop {
		return nil
	}
	return err
}

func (w *walker) walk(rel string, s *scope, visit func(string, entry) error) error {
	d := w.root
	if rel != "" {
		var err error
		if d, err = w.open(rel); err == nil && kernelOnly(int(d.Fd())) {
			d.Close()
			err = errProc
		}
		if err != nil {
			w.left.add(w.shown(rel))
			return nil
		}
	}
	if !w.ignored {
		named := rel != "" && w.glob.names(path.Base(rel))
		whole := named && s.ignored(w.prefix+rel, true)
		s = w.scope(int(d.Fd()), s, w.prefix+slash(rel), w.shown(rel), rel != "")
		if whole || named && s.ignoresAll(w.prefix+rel) {
			s = nil
		}
	}
	cache := false
	entries, over, err := w.list(d, rel, maxHeld-w.held, func(e entry) bool {
		p := path.Join(rel, e.name)
		isDir := e.kind.IsDir()
		cache = cache || rel != "" && !w.ignored && !isDir && marked(rel, e.name)
		switch {
		case e.name == ".git", !w.hidden && !w.glob.hidden && e.name[0] == '.',
			isDir && (!w.glob.enter(p) || w.skips(p, e.name)), !isDir && !w.glob.match(p):
			return false
		}
		return !w.excludes(s, p, isDir)
	})
	if rel != "" {
		d.Close()
	}
	if err != nil {
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		w.left.add(slash(w.shown(rel)))
		return nil
	}
	if cache && !w.glob.names(path.Base(rel)) {
		w.skipped.add(w.shown(rel))
		return nil
	}
	w.over = w.over || over
	w.held += len(entries)
	defer func() { w.held -= len(entries) }()
	for _, e := range entries {
		p := path.Join(rel, e.name)
		if e.kind.IsDir() {
			err = w.walk(p, s, visit)
		} else {
			err = visit(p, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) open(rel string) (*os.File, error) {
	if view != nil {
		return openDirAt(unix.AT_FDCWD, w.place(rel), unix.O_NOFOLLOW)
	}
	return openDirAt(int(w.root.Fd()), rel, unix.O_NOFOLLOW)
}

// place is the path of something below the root.
func (w *walker) place(rel string) string { return path.Join(w.path, rel) }

// shown is the path of something below the root, in results.
func (w *walker) shown(rel string) string { return path.Join(w.base, rel) }

// excludes reports whether rules of .gitignore leave something out. A directory
// that the glob names isn't left out.
func (w *walker) excludes(s *scope, rel string, isDir bool) bool {
	if w.ignored || !s.ignored(w.prefix+rel, isDir) || isDir && w.glob.names(path.Base(rel)) {
		return false
	}
	w.excluded.add(w.shown(rel))
	return true
}

func slash(rel string) string {
	if rel == "" {
		return ""
	}
	return rel + "/"
}

// list reads the directory rel and gives the first names of those to keep, in
// order.
func (w *walker) list(d *os.File, rel string, most int, keep func(entry) bool) (out []entry, over bool, err error) {
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, false, err
		}
		batch, err := d.ReadDir(1024)
		for _, b := range batch {
			// Many patterns take their time for one name.
			if err := w.ctx.Err(); err != nil {
				return nil, false, err
			}
			e := entry{b.Name(), b.Type()}
			if e.kind&os.ModeSymlink != 0 {
				e.kind = view.kindOf(w.place(path.Join(rel, e.name)))
			}
			if keep(e) {
				out = append(out, e)
			}
		}
		if len(out) >= 2*most+1024 { // cut now and then, so that it costs little
			sort.Slice(out, func(i, j int) bool { return order(out[i], out[j]) < 0 })
			clear(out[most:])
			out, over = out[:most], true
		}
		if err != nil {
			sort.Slice(out, func(i, j int) bool { return order(out[i], out[j]) < 0 })
			if len(out) > most {
				out, over = out[:most], true
			}
			if len(batch) == 0 && err == io.EOF {
				err = nil
			}
			return out, over, err
		}
	}
}

// kernelOnly reports whether a file system has no files but the kernel's answers,
// some of which wait or do something. They are searched only where they are
// asked for.
func kernelOnly(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return true
	}
	switch int64(fs.Type) {
	case unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.DEVPTS_SUPER_MAGIC:
		return true
	}
	return false
}

// paths are counted, and the first ones in order are named.
type paths struct {
	n     int
	names []string
}

func (l *paths) add(name string) {
	const most = 3
	l.n++
	name = show(name)
	at, _ := slices.BinarySearch(l.names, name)
	l.names = slices.Insert(l.names, at, name)
	l.names = l.names[:min(most, len(l.names))]
}

func (l *paths) String() string {
	text := strings.Join(l.names, ", ")
	if l.n > len(l.names) {
		text += fmt.Sprintf(" and %d more", l.n-len(l.names))
	}
	return text
}

// note says what the walk did not look at; empty for nothing.
func (w *walker) note() string {
	var notes []string
	if w.skipped.n > 0 {
		notes = append(notes, fmt.Sprintf("skipped as dependencies or caches: %s", &w.skipped))
	}
	if w.excluded.n > 0 {
		notes = append(notes, fmt.Sprintf("skipped by .gitignore: %s", &w.excluded))
	}
	if len(notes) > 0 {
		notes = append(notes, "to look into one, give it as path or name it in glob, or set ignored for all")
	}
	if w.left.n > 0 {
		notes = append(notes, fmt.Sprintf("skipped because they can't be read: %s", &w.left))
	}
	return strings.Join(notes, "; ")
}
