package facts

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// entryID returns device, inode and time of birth of a path (statx(2)), which no other
// file gets: inode numbers are used again. It is empty where there is nothing, and on
// file systems that don't keep the time.
func entryID(path string) string {
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, want, &st)
	if err != nil || st.Mask&want != want {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d.%09d", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
