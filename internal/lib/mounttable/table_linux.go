package mounttable

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const mountinfo = "/proc/self/mountinfo"

// Table holds the mounts of this mount namespace as they were at the start.
type Table struct {
	fd     int
	text   []byte             // of mountinfo, as it was last
	next   []byte             // to read it again
	mounts map[string]mounted // by mount ID
}

// mounted is one mount. Its paths have octal escapes.
type mounted struct {
	root, point string // root: in the file system of the mount
	readOnly    bool
}

// LookAgain is how often the mounts are compared: the kernel reports that one is taken
// away, and doesn't report that one moved.
const LookAgain = 250 * time.Millisecond

// Open reads the mounts. Each one that is taken away wakes [Table.Lost].
func Open() (*Table, error) {
	// The kernel reports changes since this open, so it comes first.
	fd, err := unix.Open(mountinfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mountinfo, err)
	}
	t := &Table{fd: fd}
	if t.text, err = t.read(nil); err != nil {
		return nil, err
	}
	t.mounts = parseMounts(t.text)
	return t, nil
}

// Text is /proc/self/mountinfo, as it was read last.
func (t *Table) Text() string { return string(t.text) }

// Lost waits until a mount is gone from its place, or can't be looked for any more, and
// returns that as an error.
func (t *Table) Lost() error {
	for {
		// POLLERR and POLLPRI report a change (proc_pid_mounts(5)).
		poll := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLPRI}}
		switch _, err := unix.Poll(poll, int(LookAgain/time.Millisecond)); err {
		case nil, unix.EINTR:
		default:
			return fmt.Errorf("%s: %w", mountinfo, err)
		}
		changed, err := t.look()
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		if gone := t.gone(parseMounts(t.text)); len(gone) > 0 {
			return fmt.Errorf("the mount at %s is gone: what was there was replaced, renamed or removed on the host", strings.Join(gone, ", "))
		}
	}
}

// look reports whether mountinfo has changed since the last look. If not, it opens no file
// and allocates nothing. In a worker whose memory is used up, the kernel looks for a process
// to kill at each allocation. It skips one that it has killed and whose threads are all ending,
// though its memory is still counted (css_task_iter_advance of kernel/cgroup/cgroup.c), and
// memory that is files has no process: then PID 1 is killed.
func (t *Table) look() (changed bool, err error) {
	if t.next, err = t.read(t.next[:0]); err != nil || bytes.Equal(t.next, t.text) {
		return false, err
	}
	t.text, t.next = t.next, t.text
	return true, nil
}

// read appends mountinfo to a buffer.
func (t *Table) read(b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, 4096)
		}
		n, err := unix.Pread(t.fd, b[len(b):cap(b)], int64(len(b)))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return b, fmt.Errorf("%s: %w", mountinfo, err)
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}

func (t *Table) gone(now map[string]mounted) (points []string) {
	for id, was := range t.mounts {
		if is, ok := now[id]; !ok || is.point != was.point || was.replaced(is.root) {
			points = append(points, was.point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points)
}

func parseMounts(text []byte) map[string]mounted {
	all := map[string]mounted{}
	for line := range strings.Lines(string(text)) {
		// 36 35 98:0 /root /point ro,relatime … (proc_pid_mountinfo(5))
		if f := strings.Fields(line); len(f) > 5 {
			all[f[0]] = mounted{f[3], f[4], slices.Contains(strings.Split(f[5], ","), "ro")}
		}
	}
	return all
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
