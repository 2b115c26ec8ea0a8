//go:build unix

package facts

import (
	"os"
	"syscall"
)

// owner returns who a file belongs to.
func owner(info os.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// idOf tells files apart, whatever their names.
func idOf(info os.FileInfo) (id fileID, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true
}
