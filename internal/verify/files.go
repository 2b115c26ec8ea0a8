package verify

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

func (m *MountPoint) has(option string) bool { return slices.Contains(m.Options, option) }

// readOnly: the mount, or the file system below it.
func (m *MountPoint) readOnly() bool { return m.has("ro") || slices.Contains(m.Super, "ro") }

// sized: a memory file system with a size.
func (m *MountPoint) sized() bool {
	return m.Type == "tmpfs" && slices.ContainsFunc(m.Super, func(o string) bool { return strings.HasPrefix(o, "size=") })
}

func mode(ro bool) string {
	if ro {
		return "ro"
	}
	return "rw"
}

// at is the mount in effect at a target; nil: there is none.
func (p *Process) at(target string) *MountPoint {
	for i := len(p.Mounts) - 1; i >= 0; i-- {
		if p.Mounts[i].Target == target {
			return &p.Mounts[i]
		}
	}
	return nil
}

// kernels are the kernel's own file systems that are mounted rw, by target: their files
// are checked by the kernel, and the dangerous ones are covered.
var kernels = map[string]string{"/proc": "proc", "/dev/pts": "devpts", "/dev/mqueue": "mqueue", "/dev/console": "devpts", "/sys/fs/cgroup": "tmpfs"}

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
	p := w.process(e)
	if p == nil || p.unread(e, "mounts") {
		return e.line()
	}
	p.isMain(e)
	if root := p.at("/"); root == nil || !root.readOnly() {
		e.outside(false, "its root is writable")
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		switch {
		case p.at(m.Target) != m: // another one is over it
		case m.Peers && slices.ContainsFunc(w.Mounts, func(x Mount) bool { return !x.Copy && subpath.Within(m.Target, x.Target) }):
			e.outside(false, "mounts of this machine are handed on to %s", m.Target)
		case m.readOnly(), m.sized(), kernels[m.Target] == m.Type:
		case slices.ContainsFunc(allowed, func(t string) bool { return subpath.Within(m.Target, t) }):
		default:
			w.writes(e.outside, e, "%s is mounted rw ("+m.Type+")", m.Target)
		}
	}
	for _, target := range covered {
		m := p.at(target)
		of := m != nil && kernels[target] == m.Type && !w.Outside.NoSetuid // Docker's, of version 1: root's
		if m == nil && (target == "/proc/sys" || target == "/sys/firmware") || m != nil && !m.readOnly() && !of && (target == "/sys/fs/cgroup" || !m.sized()) {
			e.outside(false, "%s is not read-only", target)
		}
	}
	e.outside(true, "the root is read-only, and so is all of %d mounts but %s and memory file systems with a size", len(p.Mounts), listOr(allowed, "the kernel's own"))
	return e.line()
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
	if w.Outside != nil && w.Outside.Process != nil { // volumes of an image are memory too
		m := w.Outside.Process.at(target)
		return m != nil && m.sized()
	}
	return false
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

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
	if w.Refusal != nil {
		e.control(w.Refusal("/etc") != "", "/etc is refused: it %s", w.Refusal("/etc"))
	}
	if w.Outside.Process != nil {
		for _, m := range w.Outside.Process.Mounts {
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
	p := w.process(e)
	if p != nil && p.unread(e, "mounts") {
		p = nil
	}
	if p != nil {
		rw := 0
		for _, t := range w.writable() {
			if m := p.at(t); m != nil && !m.readOnly() {
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
			e.outside(m.readOnly(), "%s is %s", d.Target, mode(m.readOnly()))
			if r, ok := w.Seen["protected."+d.Target]; ok {
				e.inside(r.Seen == "ro", "%s %s", d.Target, saw(r))
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

func (w *Worker) copies() Line {
	e := w.begin("B9")
	n := 0
	p := w.process(about("", ""))
	for _, m := range w.Mounts {
		if !m.Copy {
			continue
		}
		n++
		e.tried("%s: its mount, and %s", m.Target, orNone(m.Excluded))
		e.says(w.Seen, "mount."+m.Target, m.Target, "ro")
		if p != nil {
			at := p.at(m.Target)
			e.outside(at != nil && at.readOnly(), "%s is mounted %s", m.Target, mode(at != nil && at.readOnly()))
		} else {
			w.process(e)
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

// SecretValues are what is searched for outside; Where is how often each text was found
// to have one.
type SecretValues struct {
	Names  []string
	Found  []string // "the engine's configuration of bob"
	Looked []string // where
}

func (w *Worker) secrets() Line {
	e := w.begin("B11")
	e.tried("which secrets are in /run/secrets")
	r, ok := w.Seen["secrets"]
	if !ok {
		e.miss("the probe said nothing of secrets")
		return e.line()
	}
	var have []string
	if r.Seen != "empty" && r.Seen != "ENOENT" {
		have = strings.Split(r.Seen, ",")
	}
	for _, name := range have {
		if !slices.Contains(w.Secrets, name) {
			if w.Changed {
				e.miss("it has the secret %s: %s", name, fileChanged)
				continue
			}
			e.inside(false, "it has the secret %s, which the file doesn't give it", name)
		}
	}
	e.inside(true, "secrets: %s", listOr(have, "none"))
	for _, name := range w.Secrets {
		s, ok := w.Seen["secret."+name]
		e.control(ok && strings.Contains(s.Seen, ":"), "its own secret %s: %s", name, saw(s))
	}
	if p := w.process(e); p != nil && !p.unread(e, "mounts") {
		for _, m := range p.Mounts {
			name, is := strings.CutPrefix(m.Target, "/run/secrets/")
			if !is {
				continue
			}
			if !slices.Contains(w.Secrets, name) && !w.Changed {
				e.outside(false, "the secret %s is mounted", name)
			}
			e.outside(m.readOnly(), "the secret %s is mounted %s", name, mode(m.readOnly()))
		}
		p.isMain(e)
	}
	return e.line()
}

// Secrets judges where values of secrets were looked for.
func Secrets(s SecretValues) Line {
	e := about("B11", "")
	e.tried("the values of %d secrets in %s", len(s.Names), listOr(s.Looked, "nothing"))
	for _, found := range s.Found {
		e.outside(false, "a value is in %s", found)
	}
	e.outside(true, "found %d times", len(s.Found))
	e.control(len(s.Looked) > 0, "%d texts were searched", len(s.Looked))
	if len(s.Names) == 0 {
		return notTested("B11", "", "no worker has a secret whose value is known here")
	}
	return e.line()
}

func (w *Worker) ports() Line {
	e := about("B10", w.Name)
	e.tried("what is published for it")
	e.control(true, "%d ports of the file", len(w.Published))
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return e.line()
	}
	for _, at := range w.Outside.Published { // a worker's own container publishes nothing
		e.outside(false, "its container publishes %s", at)
	}
	e.outside(true, "its container publishes nothing itself")
	return e.line()
}

// Published judges the ports that the guard publishes: declared are the addresses of the
// file, listening those at which this machine listens.
func Published(o *Outside, declared, listening []string, changed bool) Line {
	e := about("B10", "guard")
	e.tried("the addresses at which ports are published")
	if o == nil || o.Why != "" {
		o.process(e)
		return e.line()
	}
	for _, at := range o.Published {
		switch ok := slices.Contains(declared, at); {
		case !ok && changed && strings.HasPrefix(at, "127.0.0.1:"):
			e.miss("%s is published: %s", at, fileChanged)
		default:
			e.outside(ok, "published at %s", at)
		}
	}
	for _, at := range listening {
		port := at[strings.LastIndex(at, ":"):]
		mine := slices.ContainsFunc(declared, func(d string) bool { return strings.HasSuffix(d, port) })
		if mine && (strings.HasPrefix(at, "0.0.0.0:") || strings.HasPrefix(at, "[::]:")) && !slices.Contains(declared, at) {
			e.outside(false, "this machine listens at %s", at)
		}
	}
	found := 0
	for _, d := range declared {
		if slices.Contains(listening, d) || slices.Contains(o.Published, d) {
			found++
		}
	}
	e.control(found == len(declared) || changed, "%d of %d addresses of the file are published", found, len(declared))
	e.outside(true, "%d ports are published", len(o.Published))
	return e.line()
}
