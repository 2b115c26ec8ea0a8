//go:build linux

package probe

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoint is one line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mountPoint struct {
	target, fstype, options, super string
}

// readOnly: either the mount or the file system below it.
func (m mountPoint) readOnly() bool {
	return slices.Contains(strings.Split(m.options, ","), "ro") || slices.Contains(strings.Split(m.super, ","), "ro")
}

func mountPoints() ([]mountPoint, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []mountPoint
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		out = append(out, mountPoint{unescape.Replace(l[4]), r[0], l[5], r[2]})
	}
	return out, nil
}

func mount(a args) (string, string) {
	all, err := mountPoints()
	if err != nil {
		return seenOf(err)
	}
	// the last one mounted there is the one in effect
	for _, m := range slices.Backward(all) {
		if m.target != a.pos[0] {
			continue
		}
		detail := m.fstype + " " + m.options + " " + m.super
		if m.readOnly() {
			return "ro", detail
		}
		return "rw", detail
	}
	return "none", ""
}

func writable(args) (string, string) {
	all, err := mountPoints()
	if err != nil {
		return seenOf(err)
	}
	var out []string
	for _, m := range all {
		if unix.Access(m.target, unix.W_OK) != nil || m.readOnly() {
			continue
		}
		if info, err := os.Stat(m.target); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue // devices such as /dev/null store nothing
		}
		out = append(out, m.target)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ","), ""
}
