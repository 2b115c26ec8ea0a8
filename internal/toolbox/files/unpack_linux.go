package files

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Unpack makes the files, directories and links of a tar stream below a
// directory, and nothing outside of it: no name leads out, and no symbolic link
// is followed out, whoever made it and when (openat2(2), RESOLVE_BENEATH; else [os.Root]).
//
// Everything belongs to the process' user, whatever the stream says, and has no
// more than permission bits. A file or link takes the place of one that is there;
// directories that are there stay as they are. What is neither is an error. So is
// a stream that ends within an entry; what was made until then stays.
func Unpack(ctx context.Context, r io.Reader, dir string) error {
	if err := checkPath(dir); err != nil {
		return err
	}
	root, err := handle(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return &PathError{dir, err}
	}
	defer unix.Close(root)
	u := &unpacker{ctx: ctx, root: root, dir: dir}
	t := tar.NewReader(&source{ctx, r})
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("read the tar stream: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return &PathError{strings.TrimSuffix(dir, "/") + "/" + clip(h.Name), err}
		}
	}
}

type unpacker struct {
	ctx  context.Context
	root int
	dir  string // its path
}

var errLeadsOut = errors.New("the name leads out of the directory")

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := local(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return errDirectory
		}
		return nil
	}
	at, err := u.open(path.Dir(name), true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	base := path.Base(name)
	if err := view.writable(at, base, u.dir); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return makeDir(at, base, uint32(h.Mode))
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(at, base, h, r)
	case tar.TypeSymlink:
		return replace(at, base, func() error { return unix.Symlinkat(h.Linkname, at, base) })
	case tar.TypeLink:
		return u.link(at, base, h.Linkname)
	}
	return kindError("is neither file, directory nor link, and can't be copied")
}

// local cleans a name that a stream has.
func local(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the name contains a zero byte")
	}
	name = path.Clean(name)
	if !filepath.IsLocal(name) {
		return "", errLeadsOut
	}
	return name, nil
}

// open returns a handle of a directory below the root; with mkdir, those that
// miss are made.
func (u *unpacker) open(name string, mkdir bool) (int, error) {
	fd, err := u.beneath(name)
	if err == unix.ENOENT && mkdir && name != "." {
		var at int
		if at, err = u.open(path.Dir(name), true); err != nil {
			return -1, err
		}
		if err = view.writable(at, path.Base(name), u.dir); err == nil {
			err = unix.Mkdirat(at, path.Base(name), 0o777)
		}
		unix.Close(at)
		if err != nil && err != unix.EEXIST {
			return -1, err
		}
		fd, err = u.beneath(name)
	}
	if err == unix.EXDEV {
		return -1, errors.New("a symbolic link leads out of the directory")
	}
	if err != nil {
		return -1, err
	}
	if err := notProc(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (u *unpacker) beneath(name string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := retry(func() (int, error) {
		return openat2(u.root, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	})
	if err != unix.ENOSYS {
		return fd, err
	}
	if len(name) >= unix.PathMax {
		return -1, unix.ENAMETOOLONG
	}
	root, err := os.OpenRoot(procPath(u.root))
	if err != nil {
		return -1, errno(err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, flags, 0)
	if err != nil {
		return -1, errno(err)
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}

// openat2 is openat2(2), which gVisor doesn't have.
var openat2 = unix.Openat2

// errno returns the error number of an error of [os.Root]; one without leads out.
func errno(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return unix.EXDEV
}

// makeDir makes a directory into which the user can write.
func makeDir(at int, name string, mode uint32) error {
	err := unix.Mkdirat(at, name, 0o700)
	if err == unix.EEXIST {
		var st unix.Stat_t
		if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return kindError("exists and is not a directory")
		}
		return nil
	}
	if err != nil {
		return err
	}
	fd, err := openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode&0o777|0o700)
}

// replace makes something; a file or link that is there is removed first.
func replace(at int, name string, make func() error) error {
	err := make()
	for range 10 { // a peer that recreates it again and again may keep it
		if err != unix.EEXIST {
			break
		}
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return errDirectory
		}
		if err := unix.Unlinkat(at, name, 0); err != nil && err != unix.ENOENT {
			return err
		}
		err = make()
	}
	return err
}

func (u *unpacker) file(at int, name string, h *tar.Header, r io.Reader) error {
	var fd int
	err := replace(at, name, func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err := io.Copy(f, &source{u.ctx, r}); err != nil {
		return err
	}
	// The time is a courtesy, and a file system may know none.
	times := []unix.Timeval{unix.NsecToTimeval(h.ModTime.UnixNano()), unix.NsecToTimeval(h.ModTime.UnixNano())}
	_ = unix.Futimes(fd, times)
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o777); err != nil {
		return err
	}
	return f.Close()
}

// link makes a hard link to something that is below the root already.
func (u *unpacker) link(at int, name, to string) error {
	to, err := local(to)
	if err != nil {
		return err
	}
	from, err := u.open(path.Dir(to), false)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	return replace(at, name, func() error { return unix.Linkat(from, path.Base(to), at, name, 0) })
}
