package verify

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

func mode(ro bool) string {
	if ro {
		return "ro"
	}
	return "rw"
}

// at is the mount in effect at a target; nil: there is none.
func (p *Process) at(target string) *procinfo.Mount {
	for i := len(p.Mounts) - 1; i >= 0; i-- {
		if p.Mounts[i].Target == target {
			return &p.Mounts[i]
		}
	}
	return nil
}

// covered must be read-only, or not there.
var covered = []string{"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/sys", "/sys/fs/cgroup", "/sys/firmware"}

// writable are the targets at or below which a worker may write.
func (w *Worker) writable() (targets []string) {
	for _, m := range w.Mounts {
		if m.ReadWrite && !m.Copy {
			targets = append(targets, m.Target)
		}
	}
	return append(targets, w.Writable...)
}

func (w *Worker) fileSystem() Line {
	e := w.begin("B3")
	e.tried("writing at /, /etc, /usr, /opt/workshop and /proc/sys; its mounts")
	var keys []string
	for _, dir := range []string{"/", "/etc/", "/usr/", "/opt/workshop/", "/proc/sys/kernel/"} {
		keys = append(keys, "write."+dir+tryName)
	}
	e.refused(w.Seen, "refused", append([]string{"ENOENT"}, readOnly...), keys...)
	e.works(w.Seen, "control.write", "a file in /tmp", "ok")
	allowed := w.writable()
	if r, ok := w.Seen["writable"]; ok {
		for target := range strings.SplitSeq(r.Seen, ",") {
			if !w.mayWrite(target, allowed) {
				w.writes(e.inside, e, "%s is writable", target)
			}
		}
		e.inside(true, "writable: %s", r.Seen)
	} else {
		e.miss("the probe said nothing of what is writable")
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(s.ReadOnly, "the engine: read_only %v", s.ReadOnly)
	}
	p := w.files(e)
	if p == nil || p.unread(e, "mounts") {
		return e.line()
	}
	p.isMain(e)
	if root := p.at("/"); root == nil || !root.ReadOnly() {
		e.outside(false, "its root is writable")
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		switch {
		case p.at(m.Target) != m: // another one is over it
		case m.Peers && slices.ContainsFunc(w.Mounts, func(x Mount) bool { return !x.Copy && subpath.Within(m.Target, x.Target) }):
			e.outside(false, "mounts of this machine are handed on to %s", m.Target)
		case m.ReadOnly(), m.Size() > 0, engine.KernelMounts[m.Target] == m.Type:
		case m.Type == "devtmpfs" && w.mayHave(strings.TrimPrefix(m.Root, "/")): // a node of the machine's, bound without root
		case slices.ContainsFunc(allowed, func(t string) bool { return subpath.Within(m.Target, t) }):
		default:
			w.writes(e.outside, e, "%s is mounted rw ("+m.Type+")", m.Target)
		}
	}
	if !w.OwnKernel || w.VM {
		w.kernelsFiles(e, p)
	}
	e.outside(true, "the root is read-only, and so is all of %d mounts but %s and memory file systems with a size", len(p.Mounts), listOr(allowed, "the kernel's own"))
	return e.line()
}

// kernelsFiles are those of this machine's kernel, which must be read-only.
func (w *Worker) kernelsFiles(e *evidence, p *Process) {
	sys := p.at("/sys")
	hidden := sys != nil && sys.Type == "tmpfs" && sys.ReadOnly() // podman's without root
	for _, target := range covered {
		m := p.at(target)
		of := m != nil && engine.KernelMounts[target] == m.Type && !w.Outside.NoSetuid // Docker's, of version 1: root's
		if m == nil && (target == "/proc/sys" || target == "/sys/firmware" && !hidden) || m != nil && !m.ReadOnly() && !of && (target == "/sys/fs/cgroup" || m.Size() == 0) {
			e.outside(false, "%s is not read-only", target)
		}
	}
}

// writes records a writable place that the file doesn't have. Where the file changed
// since, it may have had it.
func (w *Worker) writes(record func(bool, string, ...any), e *evidence, format, target string) {
	if w.Changed {
		e.miss(format+", and not by the file: "+fileChanged, target)
		return
	}
	record(false, format+", and not by the file", target)
}

// memory are the places of memory file systems.
var memory = []string{"/tmp", "/scratch", "/home/worker", "/dev/shm", "/dev/mqueue"}

func (w *Worker) mayWrite(target string, allowed []string) bool {
	if target == "" || slices.Contains(memory, target) || slices.ContainsFunc(allowed, func(t string) bool { return subpath.Within(target, t) }) {
		return true
	}
	if p := w.files(about("", "")); p != nil { // volumes of an image are memory too
		m := p.at(target)
		return m != nil && m.Size() > 0
	}
	return false
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}
