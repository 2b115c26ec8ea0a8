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
// protects what has its name (B3, B8). It keeps a mount whose source is renamed or
// removed there.
type mountTable struct {
	fd     int
	mounts map[string]mounted // by mount ID
}

// mounted is one mount. Its paths have octal escapes.
type mounted struct {
	root, point string // root: in the file system of the mount
	readOnly    bool
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
	t.mounts, err = mounts()
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
		now, err := mounts()
		if err != nil {
			return err
		}
		if gone := t.gone(now); len(gone) > 0 {
			return fmt.Errorf("the mount at %s is gone: what was there was replaced, renamed or removed on the host", strings.Join(gone, ", "))
		}
	}
}

func (t *mountTable) gone(now map[string]mounted) (points []string) {
	for id, was := range t.mounts {
		if is, ok := now[id]; !ok || is.point != was.point || was.replaced(is.root) {
			points = append(points, was.point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points)
}

func mounts() (map[string]mounted, error) {
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, err
	}
	all := map[string]mounted{}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /point ro,relatime … (proc_pid_mountinfo(5))
		if f := strings.Fields(line); len(f) > 5 {
			all[f[0]] = mounted{f[3], f[4], slices.Contains(strings.Split(f[5], ","), "ro")}
		}
	}
	return all, nil
}

// replaced reports whether the source of a mount was renamed or removed on the host,
// which its root shows: the worker would go on in what is no longer in its place. A
// file that can only be read goes on having its text, and what is in /run is ours.
func (m mounted) replaced(root string) bool {
	if root == m.root || strings.HasPrefix(m.point, "/run/") {
		return false
	}
	if !m.readOnly {
		return true
	}
	info, err := os.Stat(unescape.Replace(m.point))
	return err != nil || info.IsDir()
}

// unescape replaces the escapes of mountinfo (mangle of fs/seq_file.c).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
