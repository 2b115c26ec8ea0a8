package app

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// draftFS is a project's directory with files that aren't written yet.
type draftFS struct {
	projectFS
	files []newFile
}

func (f draftFS) file(name string) *newFile {
	for i := range f.files {
		if f.files[i].path == name {
			return &f.files[i]
		}
	}
	return nil
}

// Open implements [fs.FS].
func (f draftFS) Open(name string) (fs.File, error) {
	if n := f.file(name); n != nil {
		return &keptFile{kept: &kept{info: draftInfo{n}}, from: bytes.NewReader(n.text)}, nil
	}
	return f.projectFS.Open(name)
}

// Stat implements [fs.StatFS].
func (f draftFS) Stat(name string) (fs.FileInfo, error) {
	if n := f.file(name); n != nil {
		return draftInfo{n}, nil
	}
	return f.projectFS.Stat(name)
}

// Lstat implements [fs.ReadLinkFS].
func (f draftFS) Lstat(name string) (fs.FileInfo, error) {
	if n := f.file(name); n != nil {
		return draftInfo{n}, nil
	}
	return f.projectFS.Lstat(name)
}

// draftInfo is what is known of a file that isn't written yet.
type draftInfo struct{ *newFile }

func (i draftInfo) Name() string     { return path.Base(i.path) }
func (i draftInfo) Size() int64      { return int64(len(i.text)) }
func (draftInfo) Mode() fs.FileMode  { return 0o644 }
func (draftInfo) ModTime() time.Time { return time.Time{} }
func (draftInfo) IsDir() bool        { return false }
func (draftInfo) Sys() any           { return nil }
