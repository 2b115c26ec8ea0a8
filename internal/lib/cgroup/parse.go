package cgroup

import (
	"path"
	"strconv"
	"strings"
)

// mount is a control group file system of /proc/self/mountinfo.
type mount struct {
	v2          bool
	root        string   // which group of the hierarchy the mount point shows
	point       string   // absolute path
	controllers []string // of v1, as its options name them; with name=… for a named hierarchy
	readOnly    bool
}

// parseMounts reads mountinfo (proc_pid_mountinfo(5)). Lines of other file
// systems, and malformed ones, are skipped: a hierarchy that isn't found is a missing
// limit, and refused.
func parseMounts(text string) []mount {
	var list []mount
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !strings.HasPrefix(right, "cgroup") {
			continue
		}
		l, r := strings.Split(left, " "), strings.Split(right, " ")
		if !ok || len(l) < 6 || len(r) < 3 || r[0] != "cgroup" && r[0] != "cgroup2" {
			continue
		}
		m := mount{v2: r[0] == "cgroup2", root: unescape(l[3]), point: unescape(l[4])}
		if !path.IsAbs(m.root) || !path.IsAbs(m.point) {
			continue
		}
		m.readOnly = hasOption(l[5], "ro") || hasOption(r[2], "ro")
		if !m.v2 {
			for o := range strings.SplitSeq(r[2], ",") {
				if !notController[o] && (!strings.Contains(o, "=") || strings.HasPrefix(o, "name=")) {
					m.controllers = append(m.controllers, o)
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// notController are the other options of a v1 hierarchy (cgroup1_show_options
// of kernel/cgroup/cgroup-v1.c).
var notController = map[string]bool{
	"rw": true, "ro": true, "noprefix": true, "xattr": true, "cpuset_v2_mode": true, "favordynmods": true, "clone_children": true, "none": true,
}

func hasOption(options, want string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// unescape undoes the \ooo of mountinfo (space, tab, newline, backslash, #).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseSelf reads /proc/self/cgroup (cgroups(7)): the own group in the v2
// hierarchy ("": there is none), and in each of v1 by controller.
func parseSelf(text string) (v2 string, v1 map[string]string) {
	v1 = map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !path.IsAbs(f[2]) {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			v2 = f[2]
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c != "" {
				v1[c] = f[2]
			}
		}
	}
	return v2, v1
}

// dirOf returns the directory of a group in /proc/self/cgroup, by a mount that may show
// a part of the hierarchy only. ok is false if the group is outside of that part.
func (m mount) dirOf(group string) (dir string, ok bool) {
	// "/..": the group, or the mount's root, is above this cgroup namespace's root.
	if !path.IsAbs(group) || strings.HasPrefix(group, "/..") || strings.HasPrefix(m.root, "/..") {
		return "", false
	}
	group, root := path.Clean(group), path.Clean(m.root)
	if root == "/" {
		return path.Join(m.point, group), true
	}
	if group == root {
		return m.point, true
	}
	rest, ok := strings.CutPrefix(group, root+"/")
	return path.Join(m.point, rest), ok
}

// field returns the number after a key in a flat keyed file: "oom_kill 3".
func field(text, key string) (int64, bool) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// hasSwap reads /proc/swaps: a heading, then a line for each.
func hasSwap(text string) bool { return strings.Count(strings.TrimSpace(text), "\n") > 0 }
