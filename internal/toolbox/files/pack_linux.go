package files

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// namesAtOnce are read of a directory before they are packed.
	namesAtOnce = 256
	// maxMissed files that couldn't be read are named.
	maxMissed = 5
)

// Pack writes a file or directory as a tar stream. Names begin with the base
// name of the path, "." for "/"; a symbolic link at its end is packed as a link.
// Of FIFOs and devices there is a header alone, of sockets nothing, and of what
// is mounted from the kernel (proc, sysfs) the directory. Files that are linked to
// each other become files of their own.
//
// What may not be read is left out, and the error names it: then the stream has
// no end of its own (two blocks of zeros), so that a reader gets the error.
// What isn't there is an error that is [unix.ENOENT].
func Pack(ctx context.Context, w io.Writer, given string) error {
	if err := checkPath(given); err != nil {
		return err
	}
	parent, name := path.Split(path.Clean(given))
	if parent == "" {
		parent = "."
	}
	if name == "" {
		name = "."
	}
	at, err := handle(unix.AT_FDCWD, parent, unix.O_DIRECTORY)
	if err == nil {
		defer unix.Close(at)
		err = notProc(at)
	}
	if err != nil {
		return &PathError{given, err}
	}
	rel := name
	if view.mountAt(given) != nil { // its parent has a link there
		at, name = unix.AT_FDCWD, given
	}
	out := bufio.NewWriterSize(w, chunk)
	p := &packer{ctx: ctx, t: tar.NewWriter(out)}
	p.first = rel
	if err = p.entry(at, name, rel); err == nil {
		err = p.incomplete()
	}
	if err == nil {
		err = p.t.Close()
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}

// PathError is an error about a path, in words for people.
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string { return explain(e.Path, e.Err).Error() }
func (e *PathError) Unwrap() error { return e.Err }

type packer struct {
	ctx    context.Context
	t      *tar.Writer
	first  string // name of the first entry
	missed []string
	more   int // beyond those
}

// incomplete is the error of what was left out.
func (p *packer) incomplete() error {
	if len(p.missed) == 0 {
		return nil
	}
	text := strings.Join(p.missed, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return errors.New("not everything could be read: " + text)
}

// miss leaves something out that can't be read; what has gone by now counts
// for nothing.
func (p *packer) miss(rel string, err error) {
	switch {
	case errors.Is(err, unix.ENOENT):
	case len(p.missed) < maxMissed:
		p.missed = append(p.missed, explain(clip(rel), err).Error())
	default:
		p.more++
	}
}

func clip(s string) string { return s[max(0, len(s)-200):] }

// entry packs what has a name in a directory, as rel. Errors of the first one
// are returned; further down they are remembered.
func (p *packer) entry(at int, name, rel string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	missed := func(err error) error {
		if rel == p.first {
			return &PathError{rel, err}
		}
		p.miss(rel, err)
		return nil
	}
	fd, err := handle(at, name, unix.O_NOFOLLOW)
	if err != nil {
		return missed(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return missed(err)
	}
	h := &tar.Header{
		Name: rel, Mode: int64(st.Mode &^ unix.S_IFMT), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Unix()),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return p.file(fd, h, st.Size, missed)
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, rel+"/"
		return p.directory(fd, h, missed)
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
		// Of the handle (readlinkat(2)): by now the name may be another's.
		if h.Linkname, err = readlink(fd, ""); err != nil {
			return missed(err)
		}
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFCHR, unix.S_IFBLK:
		h.Typeflag = tar.TypeChar
		if st.Mode&unix.S_IFMT == unix.S_IFBLK {
			h.Typeflag = tar.TypeBlock
		}
		h.Devmajor, h.Devminor = int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	default:
		return nil
	}
	return p.t.WriteHeader(h)
}

func (p *packer) directory(fd int, h *tar.Header, missed func(error) error) error {
	d, err := openDirAt(fd, ".", 0)
	ofKernel := errors.Is(err, errProc) || hasNoSizes(fd)
	if err != nil && !ofKernel {
		if err := missed(err); err != nil {
			return err
		}
	}
	if err := p.t.WriteHeader(h); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	defer d.Close()
	if ofKernel {
		return nil
	}
	for {
		names, err := d.Readdirnames(namesAtOnce)
		for _, n := range names {
			if err := p.entry(int(d.Fd()), n, h.Name+n); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return missed(err)
		}
	}
}

// hasNoSizes reports whether the sizes of the file system's files are not true.
func hasNoSizes(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && int64(fs.Type) == unix.SYSFS_MAGIC
}

// file packs as many bytes as the file has when it is opened.
func (p *packer) file(fd int, h *tar.Header, size int64, missed func(error) error) error {
	if _, err := regular(fd); err != nil { // of a procfs
		return missed(err)
	}
	f, err := reopen(fd, h.Name, unix.O_RDONLY)
	if err != nil {
		return missed(err)
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, size
	if err := p.t.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyN(p.t, &source{p.ctx, f}, size)
	switch {
	case err == io.EOF:
		return fmt.Errorf("%s became shorter while it was packed: %d bytes of %d", show(h.Name), n, size)
	case err != nil && p.ctx.Err() == nil:
		return &PathError{h.Name, err}
	}
	return err
}
