package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// openFile opens a regular file for the flags, which are those of open(2)
// without O_CREAT. It looks at the file before it opens it: opening a FIFO may
// wait for ever, and opening a device may do something.
func openFile(path string, flags int) (*os.File, *unix.Stat_t, error) {
	if err := checkPath(path); err != nil {
		return nil, nil, err
	}
	fd, err := handle(unix.AT_FDCWD, path, 0)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	defer unix.Close(fd)
	st, err := regular(fd)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	f, err := reopen(fd, path, flags)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	return f, st, nil
}

// openDir opens a directory to list it.
func openDir(path string) (*os.File, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	f, err := openDirAt(unix.AT_FDCWD, path, 0)
	if err == unix.ENOTDIR {
		if fd, e := handle(unix.AT_FDCWD, path, 0); e == nil {
			unix.Close(fd)
			err = errFile
		}
	}
	if err != nil {
		return nil, explain(path, err)
	}
	return f, nil
}

// openDirAt opens a directory below another one. No directory does anything
// when it is opened; so it is looked at afterwards.
func openDirAt(at int, path string, flags int) (*os.File, error) {
	fd, err := openAt(at, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags)
	if err != nil {
		return nil, err
	}
	if err := notProc(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), procPath(fd)), nil // a path by which ReadDir can look at names
}

// handle opens a path without opening what is there (O_PATH).
func handle(at int, path string, flags int) (int, error) {
	return openAt(at, path, unix.O_PATH|unix.O_CLOEXEC|flags)
}

// openAt follows no magic link (openat2(2)): /dev/fd/3 would be a file that the
// session itself has open. Kernels before 5.6 don't know openat2, and an engine's
// seccomp profile may not; then what such a link leads to is looked at all the
// same: a regular file that is not on a procfs.
func openAt(at int, path string, flags int) (int, error) {
	if view != nil {
		return view.openAt(at, path, flags)
	}
	return retry(func() (int, error) {
		fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_MAGICLINKS})
		switch err {
		case unix.ENOSYS, unix.EPERM:
			return unix.Openat(at, path, flags, 0)
		case unix.ELOOP:
			if plain, e := unix.Openat(at, path, flags, 0); e == nil {
				unix.Close(plain)
				return -1, errProc
			}
		}
		return fd, err
	})
}

// reopen opens the very file of a handle, wherever its name points by now.
func reopen(fd int, name string, flags int) (*os.File, error) {
	n, err := retry(func() (int, error) {
		return unix.Open(procPath(fd), flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(n, false) // of a regular file it means nothing, and os.File would ask epoll
	return os.NewFile(uintptr(n), name), nil
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// errProc closes procfs: /proc/self/mem is the session's own memory.
var errProc = errors.New("files below /proc are closed to the file tools; the shell can read them")

func notProc(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if int64(fs.Type) == unix.PROC_SUPER_MAGIC {
		return errProc
	}
	return nil
}

// kindError is something that a tool doesn't work on.
type kindError string

func (e kindError) Error() string { return string(e) }

const (
	errDirectory = kindError("is a directory")
	errFile      = kindError("is a file, not a directory")
)

// regular wants a regular file that is not on a procfs.
func regular(fd int) (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if err := notProc(fd); err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return &st, nil
	case unix.S_IFDIR:
		return nil, errDirectory
	case unix.S_IFIFO:
		return nil, kindError("is a FIFO, not a regular file")
	case unix.S_IFSOCK:
		return nil, kindError("is a socket, not a regular file")
	case unix.S_IFLNK:
		return nil, kindError("is a symbolic link, not a regular file")
	}
	return nil, kindError("is a device, not a regular file")
}

func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("path is empty")
	case strings.ContainsRune(path, 0):
		return errors.New("path contains a zero byte")
	}
	return nil
}

// explain tells an error of a path as a person would.
func explain(path string, err error) error {
	path = show(path)
	var kind kindError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind), errors.Is(err, errProc):
		if errors.Is(err, errProc) {
			return fmt.Errorf("%s: %w", path, err)
		}
		return fmt.Errorf("%s %w", path, err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: no such file or directory%s", path, inWorkdir(path))
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s: a part of the path is not a directory", path)
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s: too many symbolic links", path)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: the worker's user may not do this (permission denied)", path)
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%s: a symbolic link leads out of the worker's mounts", path)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s: the file system is mounted read-only", path)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%s: no space left", path)
	}
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// inWorkdir says what a relative path is relative to.
func inWorkdir(p string) string {
	if path.IsAbs(p) {
		return ""
	}
	dir := workdir()
	if dir == "" {
		return ""
	}
	return " in the working directory " + show(dir)
}

// workdir is the directory that relative paths are below; empty: unknown.
func workdir() string {
	if view != nil {
		return view.workdir
	}
	dir, err := unix.Getwd()
	if err != nil || !path.IsAbs(dir) {
		return ""
	}
	return dir
}

// resultPath is a path of the caller as results have it, for another call to take:
// relative to the working directory where it is below that, otherwise absolute. Of
// one with "..", before which there may be a symbolic link, the descriptor says
// where it is.
func resultPath(given string, fd int) string {
	dir, p := workdir(), given
	switch {
	case view != nil:
		p = view.abs(given)
	case slices.Contains(strings.Split(given, "/"), ".."):
		real, err := os.Readlink(procPath(fd))
		if err != nil || !path.IsAbs(real) {
			return given
		}
		p = real
	case !path.IsAbs(given):
		p = path.Join(dir, given)
	}
	p = path.Clean(p)
	if p == dir {
		return "."
	}
	if rel, ok := subpath.Below(p, dir); ok && dir != "/" {
		return rel
	}
	return p
}

// retry calls again what a signal has interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
