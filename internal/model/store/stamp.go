//go:build linux || darwin

package store

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.Changed = uint64(st.Dev), st.Ino, changed(st)
	}
	return s
}
