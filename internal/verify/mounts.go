package verify

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

func (w *Worker) sources() Line {
	e := about("B7", w.Name)
	e.tried("the sources of its mounts, by the list of refused paths")
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return e.line()
	}
	n := 0
	for _, m := range w.Mounts {
		source, bound := w.Outside.Binds[m.Target]
		if m.Copy || !bound {
			continue
		}
		n++
		if w.Refusal == nil {
			e.miss("the facts of this machine are not known")
			break
		}
		if why := w.Refusal(source); why != "" {
			e.outside(false, "%s, at %s, %s", source, m.Target, why)
		}
	}
	e.outside(true, "%d binds of the file", n)
	for _, target := range w.Replaced {
		e.outside(false, "what is at %s was replaced, renamed or removed on the host", target)
	}
	for _, socket := range w.Sockets {
		e.outside(false, "the socket %s came into its mounts", socket)
	}
	if w.SocketsMissed != nil {
		e.miss("sockets in its mounts: %v", w.SocketsMissed)
	}
	if w.Refusal != nil {
		e.control(w.Refusal("/etc") != "", "/etc is refused: it %s", w.Refusal("/etc"))
	}
	if p := w.files(about("", "")); p != nil {
		for _, m := range p.Mounts {
			ofFile := slices.ContainsFunc(w.Mounts, func(x Mount) bool { return subpath.Within(m.Target, x.Target) })
			if ofFile && slices.Contains([]string{"proc", "sysfs", "devtmpfs", "cgroup", "cgroup2"}, m.Type) {
				e.outside(false, "%s of this machine is at %s", m.Type, m.Target)
			}
		}
	}
	return e.line()
}

func (w *Worker) protected() Line {
	e := w.begin("B8")
	if len(w.Protected) == 0 {
		e.tried("directories in rw mounts that host programs use")
		e.control(true, "%d rw mounts were searched", len(w.writable()))
		e.outside(true, "there is none")
		return e.line()
	}
	var targets []string
	for _, d := range w.Protected {
		targets = append(targets, d.Target)
	}
	e.tried("the mounts at %s", strings.Join(targets, ", "))
	p := w.files(e)
	if p != nil && p.unread(e, "mounts") {
		p = nil
	}
	if p != nil {
		rw := 0
		for _, t := range w.writable() {
			if m := p.at(t); m != nil && !m.ReadOnly() {
				rw++
			}
		}
		e.control(rw > 0, "%d mounts around them are seen rw", rw)
	}
	for _, d := range w.Protected {
		if p == nil {
			break
		}
		switch m := p.at(d.Target); {
		case m != nil:
			e.outside(m.ReadOnly(), "%s is %s", d.Target, mode(m.ReadOnly()))
			if r, ok := w.Seen["protected."+d.Target]; ok {
				e.inside(r.Seen == w.protectedSeen(), "%s %s", d.Target, saw(r))
			}
		case d.Later:
			e.outside(true, "%s was made since the worker started: `workshop ps` names it", d.Target)
		case w.Changed:
			e.miss("%s is not a mount: %s", d.Target, fileChanged)
		case d.Unsure:
			e.miss("%s is not a mount, and may be newer than the worker", d.Target)
		default:
			e.outside(false, "%s is not protected", d.Target)
		}
	}
	return e.line()
}

// protectedSeen is what a probe sees of what is read-only.
func (w *Worker) protectedSeen() string {
	if w.VM {
		return "EROFS"
	}
	return "ro"
}

func (w *Worker) copies() Line {
	e := w.begin("B9")
	n := 0
	p := w.files(about("", ""))
	for _, m := range w.Mounts {
		if !m.Copy {
			continue
		}
		n++
		e.tried("%s: its mount, and %s", m.Target, orNone(m.Excluded))
		if !w.VM { // it may be in another mount of its guest's
			e.says(w.Seen, "mount."+m.Target, m.Target, "ro")
		}
		if p != nil {
			at := p.at(m.Target)
			e.outside(at != nil && at.ReadOnly(), "%s is mounted %s", m.Target, mode(at != nil && at.ReadOnly()))
		} else {
			w.files(e)
		}
		if m.Excluded == "" {
			continue
		}
		e.refused(w.Seen, "missing", []string{"ENOENT"}, "excluded."+m.Target)
		if m.Kept != "" {
			r, ok := w.Seen["kept."+m.Target]
			e.control(ok && strings.Contains(r.Seen, ":"), "%s is there: %s", m.Kept, saw(r))
		}
	}
	if n == 0 {
		e.tried("mounts with exclude")
		e.control(true, "%d mounts of the file", len(w.Mounts))
		e.outside(true, "there is none")
	} else if p != nil {
		p.isMain(e)
	}
	return e.line()
}

func orNone(name string) string {
	if name == "" {
		return "no excluded file is in its source now"
	}
	return "the excluded " + name
}
