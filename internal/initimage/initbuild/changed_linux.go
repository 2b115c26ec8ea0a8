package initbuild

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when a file was last changed, which no program can set (inode(7), ctime).
func changed(info fs.FileInfo) time.Time {
	st := info.Sys().(*syscall.Stat_t)
	return time.Unix(st.Ctim.Unix())
}
