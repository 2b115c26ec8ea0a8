package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Mount is a part of this machine that a worker has at a path of its own.
type Mount struct {
	Target   string // absolute path in the worker
	Source   string // absolute here, without symbolic links
	ReadOnly bool
	// Handle is an open descriptor of the source (O_PATH), which the view takes
	// over; 0: it is opened by its path.
	Handle int
}

// View is what a worker sees that has no file system of its own (process mode).
// Then the tools take paths as the worker has them, and every one is opened below
// the source of its mount (openat2(2), RESOLVE_BENEATH): neither ".." nor a
// symbolic link leads out, whoever makes it and when. The methods of a nil view
// do what there is to do without one.
type View struct {
	workdir string
	mounts  []*mount // the longest target first
}

type mount struct {
	Mount
	file bool // the source is a file; else a directory
}

// view of this process; nil: the kernel gives the worker its mounts.
var view *View

// Use makes all tools of this process take paths by a view. It is for the start
// of a session, before its first call. One mount has the target "/", which is
// where all other paths lead.
func Use(workdir string, mounts []Mount) (*View, error) {
	v := &View{workdir: workdir}
	for _, m := range mounts {
		if !path.IsAbs(m.Target) || !path.IsAbs(m.Source) {
			return nil, fmt.Errorf("the mount of %q at %q is not absolute", m.Source, m.Target)
		}
		if m.Handle == 0 {
			var err error
			if m.Handle, err = openReal(m.Source); err != nil {
				return nil, fmt.Errorf("the source %s of %s: %w", m.Source, m.Target, err)
			}
		}
		var st unix.Stat_t
		if err := unix.Fstat(m.Handle, &st); err != nil {
			return nil, fmt.Errorf("the source %s of %s: %w", m.Source, m.Target, err)
		}
		m.Target, m.Source = path.Clean(m.Target), path.Clean(m.Source)
		v.mounts = append(v.mounts, &mount{m, st.Mode&unix.S_IFMT != unix.S_IFDIR})
	}
	sort.SliceStable(v.mounts, func(i, j int) bool { return len(v.mounts[i].Target) > len(v.mounts[j].Target) })
	if len(v.mounts) == 0 || v.mounts[len(v.mounts)-1].Target != "/" {
		return nil, errors.New("the worker's view has no root")
	}
	view = v
	return v, nil
}

func openReal(p string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	})
}

func (v *View) abs(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(v.workdir, p)
	}
	return path.Clean(p)
}

// locate finds the mount of a path, and what the path is in there.
func (v *View) locate(p string) (m *mount, rel string) {
	p = v.abs(p)
	for _, m = range v.mounts {
		if subpath.Within(p, m.Target) {
			break
		}
	}
	rel = strings.TrimPrefix(strings.TrimPrefix(p, m.Target), "/")
	if rel == "" {
		rel = "."
	}
	return m, rel
}

// mountAt returns the mount whose target a path is.
func (v *View) mountAt(p string) *mount {
	if v == nil {
		return nil
	}
	if m, rel := v.locate(p); rel == "." && m.Target != "/" {
		return m
	}
	return nil
}

// openAt opens what is below a directory, or a path of the worker.
func (v *View) openAt(at int, p string, flags int) (int, error) {
	if at == unix.AT_FDCWD {
		m, rel := v.locate(p)
		if m.file {
			return m.open(rel, flags)
		}
		at, p = m.Handle, rel
	}
	return retry(func() (int, error) {
		return unix.Openat2(at, p, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	})
}

// open opens the file of a mount, that very one, as a bind mount would.
func (m *mount) open(rel string, flags int) (int, error) {
	switch {
	case rel != "." || flags&unix.O_DIRECTORY != 0:
		return -1, unix.ENOTDIR
	case flags&unix.O_PATH != 0:
		return unix.FcntlInt(uintptr(m.Handle), unix.F_DUPFD_CLOEXEC, 3)
	}
	return retry(func() (int, error) { return unix.Open(procPath(m.Handle), flags&^unix.O_NOFOLLOW, 0) })
}

// writable refuses a name in an open directory, to which the path of the worker
// has led, where a mount says so. It asks where the directory really is: within
// a writable mount a link may lead to one that is read-only, as .git is.
func (v *View) writable(dir int, name, p string) error {
	if v == nil {
		return nil
	}
	m, _ := v.locate(p)
	if m.ReadOnly {
		return unix.EROFS
	}
	real, err := os.Readlink(procPath(dir))
	if err != nil {
		return err
	}
	real = path.Join(real, name)
	if !subpath.Within(real, m.Source) {
		return unix.EXDEV // it was moved away
	}
	for _, other := range v.mounts {
		if other.ReadOnly && len(other.Source) > len(m.Source) && subpath.Within(real, other.Source) {
			return unix.EROFS
		}
	}
	return nil
}

// mkdir makes one directory.
func (v *View) mkdir(p string) error {
	if v == nil {
		return unix.Mkdir(p, 0o777)
	}
	return v.inParent(p, func(at int, name string) error {
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return unix.EEXIST
		}
		if err := v.writable(at, name, p); err != nil {
			return err
		}
		return unix.Mkdirat(at, name, 0o777)
	})
}

// rmdir takes one away that was made for nothing.
func (v *View) rmdir(p string) {
	if v == nil {
		_ = unix.Rmdir(p)
		return
	}
	_ = v.inParent(p, func(at int, name string) error { return unix.Unlinkat(at, name, unix.AT_REMOVEDIR) })
}

func (v *View) inParent(p string, do func(at int, name string) error) error {
	p = v.abs(p)
	if _, rel := v.locate(p); rel == "." {
		return unix.EEXIST
	}
	at, err := v.openAt(unix.AT_FDCWD, path.Dir(p), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return do(at, path.Base(p))
}

// kindOf is what a symbolic link is at a path: of the view itself, links
// represent mounts.
func (v *View) kindOf(p string) os.FileMode {
	switch m := v.mountAt(p); {
	case m == nil:
		return os.ModeSymlink
	case m.file:
		return 0
	}
	return os.ModeDir
}

// Directory opens a directory of the worker; its name is a path by which this
// process and its children reach it, wherever it is.
func (v *View) Directory(p string) (*os.File, error) {
	fd, err := v.openAt(unix.AT_FDCWD, p, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, &PathError{p, err}
	}
	return os.NewFile(uintptr(fd), procPath(fd)), nil
}

// Open opens what is at a path of the worker.
func (v *View) Open(p string, flags int) (*os.File, error) {
	fd, err := v.openAt(unix.AT_FDCWD, p, flags|unix.O_CLOEXEC|unix.O_NOCTTY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	return os.NewFile(uintptr(fd), p), nil
}

// Source returns the path here of an absolute one in a mount, as it is written;
// others stay as they are.
func (v *View) Source(p string) string {
	if v == nil || !path.IsAbs(p) {
		return p
	}
	if m, rel := v.locate(p); m.Target != "/" {
		return path.Join(m.Source, rel)
	}
	return p
}

func isDirectory(p string) bool {
	fd, err := handle(unix.AT_FDCWD, p, unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// aboveInView is above for a directory whose path here is real: it looks no
// higher than the source of its mount.
func (w *walker) aboveInView(real string) (*scope, string) {
	m, _ := view.locate(w.path)
	if m.Target == "/" || !subpath.Within(real, m.Source) || m.file {
		return nil, ""
	}
	in := func(p string) string { return path.Join(".", strings.TrimPrefix(p, m.Source)) }
	top := real
	for d := real; ; d = path.Dir(d) {
		if top = d; d == m.Source || exists(m.Handle, path.Join(in(d), ".git")) {
			break
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(real, top), "/")
	return w.downTo(rel, m.Handle, in(top), path.Join(m.Target, in(top)))
}
