package git

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// maxBlob bounds a file that is read, in bytes.
const maxBlob = 16 << 20

// maxLinks bounds the symbolic links on the way to a file, as the kernel does (ELOOP,
// path_resolution(7)).
const maxLinks = 40

// Files are the files of a commit, read when they are opened. Symbolic links are
// followed inside of them, and lead nowhere else. It implements [fs.ReadDirFS],
// [fs.StatFS] and [fs.ReadLinkFS].
type Files struct {
	// Commit is its object name.
	Commit  string
	batch   *batch
	entries map[string]entry
	dirs    map[string][]string // names of what is in each
	texts   map[string][]byte   // by object
}

type kind int

const (
	regular kind = iota
	link
	directory
)

type entry struct {
	kind   kind
	object string
	size   int64
}

// Close ends the git program.
func (f *Files) Close() { f.batch.close() }

var errLinks = errors.New("too many levels of symbolic links")

// follow returns the path of a name without symbolic links; last: also the last part.
func (f *Files) follow(name string, last bool) (string, error) {
	if !fs.ValidPath(name) {
		return "", fs.ErrInvalid
	}
	at := "."
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if at == "." {
				return "", fs.ErrNotExist // it leads out of the tree
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		e, ok := f.entries[next]
		if !ok {
			return "", fs.ErrNotExist
		}
		if e.kind == link && (last || len(rest) > 0) {
			if links++; links > maxLinks {
				return "", errLinks
			}
			to, err := f.text(e)
			if err != nil {
				return "", err
			}
			if path.IsAbs(string(to)) {
				return "", fs.ErrNotExist
			}
			rest = append(strings.Split(string(to), "/"), rest...)
			continue
		}
		at = next
	}
	return at, nil
}

func (f *Files) text(e entry) ([]byte, error) {
	if t, ok := f.texts[e.object]; ok {
		return t, nil
	}
	t, err := f.batch.blob(e.object)
	if err == nil {
		if f.texts == nil {
			f.texts = map[string][]byte{}
		}
		f.texts[e.object] = t
	}
	return t, err
}

// find is follow with what is there.
func (f *Files) find(op, name string, last bool) (string, entry, error) {
	at, err := f.follow(name, last)
	if err != nil {
		return "", entry{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if at == "." {
		return at, entry{kind: directory}, nil
	}
	return at, f.entries[at], nil
}

// Open implements [fs.FS].
func (f *Files) Open(name string) (fs.File, error) {
	at, e, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	file := &file{info: info{path.Base(name), e}}
	if e.kind == directory {
		file.list = f.list(at)
		return file, nil
	}
	if e.size > maxBlob {
		return file, nil // the reader sees its size first
	}
	text, err := f.text(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file.Reader = bytes.NewReader(text)
	return file, nil
}

// Stat implements [fs.StatFS].
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	_, e, err := f.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{path.Base(name), e}, nil
}

// Lstat implements [fs.ReadLinkFS].
func (f *Files) Lstat(name string) (fs.FileInfo, error) {
	_, e, err := f.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{path.Base(name), e}, nil
}

// ReadLink implements [fs.ReadLinkFS].
func (f *Files) ReadLink(name string) (string, error) {
	_, e, err := f.find("readlink", name, false)
	if err == nil && e.kind != link {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	to, err := f.text(e)
	return string(to), err
}

// ReadDir implements [fs.ReadDirFS].
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	at, e, err := f.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if e.kind != directory {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return f.list(at), nil
}

func (f *Files) list(dir string) []fs.DirEntry {
	names := slices.Sorted(slices.Values(f.dirs[dir]))
	out := make([]fs.DirEntry, len(names))
	for i, name := range names {
		out[i] = fs.FileInfoToDirEntry(info{name, f.entries[path.Join(dir, name)]})
	}
	return out
}

// file is an open file or directory.
type file struct {
	*bytes.Reader
	info info
	list []fs.DirEntry
}

// Stat implements [fs.File].
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements [fs.File].
func (f *file) Read(p []byte) (int, error) {
	if f.Reader == nil {
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("a directory, or too large")}
	}
	return f.Reader.Read(p)
}

// Close implements [fs.File].
func (f *file) Close() error { return nil }

// ReadDir implements [fs.ReadDirFile].
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n >= len(f.list) {
		out := f.list
		f.list = nil
		return out, nil
	}
	out := f.list[:n]
	f.list = f.list[n:]
	return out, nil
}

// info is what is known of a file.
type info struct {
	name string
	entry
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.entry.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.entry.kind == directory }
func (i info) Sys() any           { return nil }

// Mode implements [fs.FileInfo].
func (i info) Mode() fs.FileMode {
	switch i.entry.kind {
	case directory:
		return fs.ModeDir | 0o755
	case link:
		return fs.ModeSymlink | 0o777
	}
	return 0o644
}
