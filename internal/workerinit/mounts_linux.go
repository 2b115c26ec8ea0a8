package workerinit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const mountinfo = "/proc/self/mountinfo"

// mountTable holds the mounts of this mount namespace as they were at the start.
//
// The kernel takes a mount away from all namespaces when its mount point is unlinked,
// removed or renamed over in one where it is none (detach_mounts of fs/namespace.c),
// and moves it along when its mount point is renamed there: `git checkout` and most
// editors do so on the host. A read-only mount inside of a writable one then no longer
// protects what has its name (B3, B8).
type mountTable struct {
	fd     int
	points map[string]string // mount ID → mount point
}

// lookAgain is how often the mounts are compared: the kernel reports that one is taken
// away, and doesn't report that one moved.
const lookAgain = 250 * time.Millisecond

// openMounts reads the mounts. Each one that is taken away wakes [mountTable.lost].
func openMounts() (*mountTable, error) {
	// The kernel reports changes since this open, so it comes first.
	fd, err := unix.Open(mountinfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mountinfo, err)
	}
	t := &mountTable{fd: fd}
	t.points, err = mountPoints()
	return t, err
}

// lost waits until a mount is gone from its place, or can't be looked for any more.
func (t *mountTable) lost() error {
	for {
		// POLLERR and POLLPRI report a change (proc_pid_mounts(5)).
		poll := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLPRI}}
		switch _, err := unix.Poll(poll, int(lookAgain/time.Millisecond)); err {
		case nil, unix.EINTR:
		default:
			return fmt.Errorf("%s: %w", mountinfo, err)
		}
		now, err := mountPoints()
		if err != nil {
			return err
		}
		if gone := t.gone(now); len(gone) > 0 {
			return fmt.Errorf("the mount at %s is gone: what was there was replaced, renamed or removed on the host", strings.Join(gone, ", "))
		}
	}
}

func (t *mountTable) gone(now map[string]string) (points []string) {
	for id, point := range t.points {
		if now[id] != point {
			points = append(points, point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points)
}

func mountPoints() (map[string]string, error) {
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, err
	}
	points := map[string]string{}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /point … (proc_pid_mountinfo(5))
		if f := strings.Fields(line); len(f) > 4 && !removed(f[3], f[4]) {
			points[f[0]] = f[4]
		}
	}
	return points, nil
}

// removed reports whether a mount is of a directory that was removed on the host: it
// stays, and nothing can be in it. A file goes on having its text, and what is in /run
// is ours.
func removed(root, point string) bool {
	if !strings.HasSuffix(root, "//deleted") || strings.HasPrefix(point, "/run/") { // seq_dentry of fs/seq_file.c
		return false
	}
	info, err := os.Stat(point)
	return err == nil && info.IsDir()
}
