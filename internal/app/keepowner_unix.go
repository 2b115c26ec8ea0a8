//go:build unix

package app

import (
	"os"
	"syscall"
)

// keepOwner gives a new file the owner of the one whose place it takes.
func keepOwner(f *os.File, old os.FileInfo) error {
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Getuid() && int(st.Gid) == os.Getgid() {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}
