//go:build unix

// Package fileowner returns the owner of a file.
package fileowner

import (
	"io/fs"
	"syscall"
)

// Of returns a file's owner; ok is false if the information has none.
func Of(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
