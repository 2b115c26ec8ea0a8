package root

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// source is a directory as go-erofs reads it. A file is opened when its content is read,
// and closed at its end: an image has more files than a process may have open.
type source struct {
	fs.ReadLinkFS
	ctx  context.Context
	root *os.Root
}

func newSource(ctx context.Context, r *os.Root) source {
	return source{r.FS().(fs.ReadLinkFS), ctx, r}
}

// Stat implements [fs.StatFS]: of the directory itself, of which alone it is asked.
func (s source) Stat(name string) (fs.FileInfo, error) {
	i, err := s.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	return s.info(name, i)
}

// ReadDir implements [fs.ReadDirFS].
func (s source) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(s.ReadLinkFS, name)
	for i, e := range list {
		list[i] = entry{e, s, path.Join(name, e.Name())}
	}
	return list, err
}

// Open implements [fs.FS].
func (s source) Open(name string) (fs.File, error) { return &lazy{source: s, name: name}, nil }

type entry struct {
	fs.DirEntry
	source source
	path   string
}

// Info implements [fs.DirEntry].
func (e entry) Info() (fs.FileInfo, error) {
	i, err := e.DirEntry.Info()
	if err != nil {
		return nil, err
	}
	return e.source.info(e.path, i)
}

// info is what go-erofs takes: it reads Sys as a system call's result.
type info struct {
	fs.FileInfo
	stat *syscall.Stat_t
}

// info returns what is the same on every file system: the number of links isn't.
func (s source) info(name string, i fs.FileInfo) (fs.FileInfo, error) {
	st := *i.Sys().(*syscall.Stat_t)
	switch i.Mode().Type() {
	case fs.ModeDir:
		list, err := fs.ReadDir(s.ReadLinkFS, name)
		if err != nil {
			return nil, err
		}
		st.Nlink = 2
		for _, e := range list {
			if e.IsDir() {
				st.Nlink++ // its ".."
			}
		}
	case 0, fs.ModeSymlink:
		st.Nlink = 1
	default:
		return nil, fmt.Errorf("%q is neither a file nor a directory nor a link", name)
	}
	return info{i, &st}, nil
}

// Sys implements [fs.FileInfo].
func (i info) Sys() any { return i.stat }

// lazy is a regular file.
type lazy struct {
	source
	name string
	f    *os.File // nil: not opened yet, or closed
}

// Stat implements [fs.File].
func (l *lazy) Stat() (fs.FileInfo, error) { return l.source.Stat(l.name) }

// Read implements [io.Reader].
func (l *lazy) Read(p []byte) (n int, err error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if l.f == nil {
		if l.f, err = l.root.Open(l.name); err != nil {
			return 0, err
		}
	}
	n, err = l.f.Read(p)
	if err == io.EOF {
		l.Close()
	}
	return n, err
}

// Close implements [io.Closer].
func (l *lazy) Close() error {
	if l.f == nil {
		return nil
	}
	defer func() { l.f = nil }()
	return l.f.Close()
}
