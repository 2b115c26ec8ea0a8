package source

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/llmdo/workshop/internal/git"
)

// Tree is the files of a source, in memory: what was checked is what is read.
type Tree map[string][]byte

// Hash is "h1:…", the hash that Go modules have (golang.org/x/mod/sumdb/dirhash): of names
// and contents.
func (t Tree) Hash() (string, error) {
	return dirhash.Hash1(slices.Sorted(maps.Keys(t)), func(name string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(t[name])), nil
	})
}

// ChangedError means that a tree isn't what it should be.
type ChangedError struct{ Why error }

// Error implements [error].
func (e *ChangedError) Error() string { return e.Why.Error() }

// Is fails with a [ChangedError] unless the tree has a hash, and only names that can be
// shared.
func (t Tree) Is(hash string) error {
	got, err := t.Hash()
	if err == nil && got != hash {
		err = fmt.Errorf("its content is %s, want %s", got, hash)
	}
	if err == nil {
		err = git.CheckNames(slices.Sorted(maps.Keys(t)))
	}
	if err != nil {
		return &ChangedError{err}
	}
	return nil
}

// FS is the tree as a file system, without links and times.
func (t Tree) FS() fs.FS {
	f := treeFS{files: t, dirs: map[string][]string{".": nil}}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for name != "." {
			dir := path.Dir(name)
			list, known := f.dirs[dir]
			if !slices.Contains(list, path.Base(name)) {
				f.dirs[dir] = append(list, path.Base(name))
			}
			if known {
				break
			}
			name = dir
		}
	}
	return f
}

type treeFS struct {
	files Tree
	dirs  map[string][]string
}

// Open implements [fs.FS].
func (f treeFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if text, ok := f.files[name]; ok {
		return &treeFile{Reader: bytes.NewReader(text), treeInfo: treeInfo{path.Base(name), int64(len(text)), false}}, nil
	}
	names, ok := f.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	d := &treeFile{Reader: bytes.NewReader(nil), treeInfo: treeInfo{path.Base(name), 0, true}}
	for _, n := range slices.Sorted(slices.Values(names)) {
		at := path.Join(name, n)
		_, isDir := f.dirs[at]
		d.list = append(d.list, fs.FileInfoToDirEntry(treeInfo{n, int64(len(f.files[at])), isDir}))
	}
	return d, nil
}

// treeFile is an open file or directory.
type treeFile struct {
	*bytes.Reader
	treeInfo
	list []fs.DirEntry
}

// Size is the file's, for both that it is made of.
func (f *treeFile) Size() int64 { return f.treeInfo.Size() }

// Stat implements [fs.File].
func (f *treeFile) Stat() (fs.FileInfo, error) { return f.treeInfo, nil }

// Close implements [fs.File].
func (f *treeFile) Close() error { return nil }

// Read implements [fs.File].
func (f *treeFile) Read(p []byte) (int, error) {
	if f.dir {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
	return f.Reader.Read(p)
}

// ReadDir implements [fs.ReadDirFile].
func (f *treeFile) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case !f.dir:
		return nil, &fs.PathError{Op: "readdir", Path: f.name, Err: fs.ErrInvalid}
	case n > 0 && len(f.list) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(f.list):
		n = len(f.list)
	}
	out := f.list[:n]
	f.list = f.list[n:]
	return out, nil
}

// treeInfo is what is known of a file.
type treeInfo struct {
	name string
	size int64
	dir  bool
}

func (i treeInfo) Name() string       { return i.name }
func (i treeInfo) Size() int64        { return i.size }
func (i treeInfo) ModTime() time.Time { return time.Time{} }
func (i treeInfo) IsDir() bool        { return i.dir }
func (i treeInfo) Sys() any           { return nil }

// Mode implements [fs.FileInfo].
func (i treeInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
