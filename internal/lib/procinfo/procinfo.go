// Package procinfo parses what the kernel shows of a process in /proc: its status, its
// mounts and the interfaces of its network (proc_pid_status(5), proc_pid_mountinfo(5)).
package procinfo

import (
	"slices"
	"strconv"
	"strings"
)

// Mount is one line of /proc/PID/mountinfo.
type Mount struct {
	ID, Parent                 int
	Target, Type, Root, Source string
	Options, Super             []string // of the mount, and of its file system
	Peers                      bool     // it hands mounts on, or gets them
}

// Has reports whether the mount has an option, such as "nosuid".
func (m *Mount) Has(option string) bool { return slices.Contains(m.Options, option) }

// ReadOnly reports whether the mount, or the file system below it, is read-only.
func (m *Mount) ReadOnly() bool { return m.Has("ro") || slices.Contains(m.Super, "ro") }

// Size is the size of a memory file system in bytes; 0: it has none.
func (m *Mount) Size() int64 {
	if m.Type != "tmpfs" {
		return 0
	}
	for _, o := range m.Super {
		// shmem_show_options of mm/shmem.c
		if text, ok := strings.CutPrefix(o, "size="); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(text, "k"), 10, 53)
			if err == nil && n > 0 && strings.HasSuffix(text, "k") {
				return n << 10
			}
		}
	}
	return 0
}

// unescape replaces the escapes of mountinfo (mangle of fs/seq_file.c), which few paths have.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapes.Replace(s)
}

var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// Mounts reads a mountinfo. Malformed lines are skipped.
func Mounts(text string) (out []Mount) {
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		l, r := strings.Split(left, " "), strings.Split(right, " ")
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		m := Mount{
			Root: unescape(l[3]), Target: unescape(l[4]), Options: strings.Split(l[5], ","),
			Type: r[0], Source: unescape(r[1]), Super: strings.Split(r[2], ","),
		}
		m.ID, _ = strconv.Atoi(l[0])
		m.Parent, _ = strconv.Atoi(l[1])
		for _, tag := range l[6:] {
			m.Peers = m.Peers || strings.HasPrefix(tag, "shared:") || strings.HasPrefix(tag, "master:")
		}
		out = append(out, m)
	}
	return out
}

// Reachable are the mounts that aren't hidden by others: neither the root of one nor of
// one above it is covered by another mount.
func Reachable(all []Mount) (out []Mount) {
	byID, covered := map[int]*Mount{}, map[int]bool{}
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	for _, m := range all {
		if p := byID[m.Parent]; p != nil && p.ID != m.ID && p.Target == m.Target {
			covered[p.ID] = true
		}
	}
	for _, m := range all {
		hidden := covered[m.ID]
		// A mount on the root of its parent is reached although that is covered: by it.
		for at, n := m, 0; !hidden && n < len(all); n++ {
			p := byID[at.Parent]
			if p == nil || p.ID == at.ID {
				break
			}
			hidden = covered[p.ID] && p.Target != at.Target
			at = *p
		}
		if !hidden {
			out = append(out, m)
		}
	}
	return out
}

// Status reads fields of a status. Their values have single spaces.
func Status(text string, fields []string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		// A name may have newlines only as \n.
		if k, v, ok := strings.Cut(line, ":"); ok && slices.Contains(fields, k) && out[k] == "" {
			out[k] = strings.Join(strings.Fields(v), " ")
		}
	}
	return out
}

// Interfaces reads /proc/net/dev: two lines of headings, then a line for each.
func Interfaces(text string) (names []string) {
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.Contains(name, "|") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	slices.Sort(names)
	return names
}
