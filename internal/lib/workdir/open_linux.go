package workdir

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Open opens a working directory (O_PATH) without following a magic link. The file's name
// is a path by which this process and its children reach it, whatever happens to dir.
// Errors have dir and the reason.
func Open(dir string) (*os.File, error) {
	fd, err := openat2(dir)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd, err = walk(dir)
	}
	if err != nil {
		return nil, explain(dir, err)
	}
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	f := os.NewFile(uintptr(fd), name)
	var fs unix.Statfs_t
	switch err = unix.Fstatfs(fd, &fs); {
	case err != nil:
	case fs.Type == unix.PROC_SUPER_MAGIC, fs.Type == unix.SYSFS_MAGIC:
		// /proc/self/fd is an ordinary directory, full of magic links.
		err = errKernels
	default:
		err = unix.Access(name, unix.X_OK)
	}
	if err != nil {
		f.Close()
		return nil, explain(dir, err)
	}
	return f, nil
}

const directory = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

func openat2(dir string) (int, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: directory, Resolve: unix.RESOLVE_NO_MAGICLINKS})
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// walk is for kernels before 5.6, which lack openat2(2), and old seccomp profiles. It
// follows no link at all.
func walk(dir string) (int, error) {
	start := "."
	if path.IsAbs(dir) {
		start = "/"
	}
	at, err := unix.Open(start, directory, 0)
	for _, name := range strings.Split(dir, "/") {
		if err != nil {
			return -1, err
		}
		if name == "" {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			unix.Close(at)
			return -1, errLink
		}
		next, e := unix.Openat(at, name, directory|unix.O_NOFOLLOW, 0)
		unix.Close(at)
		at, err = next, e
	}
	return at, err
}

var (
	errKernels = errors.New("it is in /proc or /sys, where no working directory can be")
	errLink    = errors.New("a link is in it, and this kernel can't tell an ordinary one from a magic one (openat2, Linux 5.6)")
)

func explain(dir string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		err = &reason{"it is or leads through a magic link, as /proc/self/fd/3 is, or its links go in a circle", err}
	case errors.Is(err, unix.ENOENT):
		err = &reason{"there is no such directory in the worker", err}
	case errors.Is(err, unix.ENOTDIR):
		err = &reason{"it is not a directory", err}
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// reason is a kernel error with another text.
type reason struct {
	text string
	err  error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.err }
