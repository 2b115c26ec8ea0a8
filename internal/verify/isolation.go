package verify

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// kinds of namespaces that a worker has to itself.
var kinds = []string{"pid", "ipc", "mnt", "net", "uts", "cgroup"}

func (w *Worker) host() Line {
	e := w.begin("B6")
	e.tried("namespaces and devices of its main process; %s; /proc/1", strings.Join(engineSockets, ", "))
	w.noEngine(e)
	e.refused(w.Seen, "closed", []string{"EACCES", "EPERM"}, "host./proc/1/fd", "host./proc/1/environ")
	r, ok := w.Seen["control./proc/self/fd"]
	e.control(ok && strings.HasPrefix(r.Seen, "0,1,2"), "its own /proc/self/fd: %s", saw(r))
	s := w.Outside.settings()
	if s != nil {
		s.host(e)
	}
	p := w.process(e)
	if p == nil {
		return e.line()
	}
	p.isMain(e)
	w.namespaces(e, p)
	if ns := strings.Fields(p.Status["NSpid"]); len(ns) < 2 || ns[len(ns)-1] != "1" || w.Outside.NoSetuid && len(ns) < 3 {
		e.outside(false, "it has no PID namespace of its own below its supervisor's (%s)", p.Status["NSpid"])
	}
	w.onlyHarmless(e, p)
	for _, m := range p.Mounts {
		if strings.HasSuffix(m.Root, ".sock") {
			e.outside(false, "a socket is mounted at %s", m.Target)
		}
	}
	if p.Owner != 0 && firstField(p.Status["Uid"]) == strconv.Itoa(p.Owner) {
		e.outside(false, "its main process can be traced by its own user, %d", p.Owner)
	}
	return e.line()
}

// noEngine looks for sockets of engines.
func (w *Worker) noEngine(e *evidence) {
	var keys []string
	for _, s := range engineSockets {
		keys = append(keys, "host."+s)
	}
	e.refused(w.Seen, "not there", notThere, keys...)
}

// namespaces compares them with ours. Without root some can't be read from outside: the
// kernel shows those of PIDs, mounts and interfaces, the rest is what the probe says.
func (w *Worker) namespaces(e *evidence, p *Process) {
	own, said := 0, 0
	for _, kind := range kinds {
		is, here := p.Namespaces[kind], p.Here[kind]
		switch {
		case here == "":
		case kind == "cgroup" && slices.Contains(w.NotHeld, "B6") && (is == here || w.Seen["ns.cgroup"].Seen == here):
			e.tried("not its cgroup namespace, which your settings waive")
		case is == here:
			e.outside(false, "its %s namespace is this machine's (%s)", kind, is)
		case is != "":
			own++
		case kind == "pid" || kind == "mnt" && (p.at("/opt/workshop") != nil || p.at("/workshop-vm") != nil) || kind == "net" && slices.Equal(p.Interfaces, []string{"lo"}):
			own++ // isMain, and what /proc shows of mounts and interfaces
		default:
			r, ok := w.Seen["ns."+kind]
			if !ok || w.VM || !strings.HasPrefix(r.Seen, kind+":[") {
				e.miss("its %s namespace can't be read: %s", kind, saw(r))
				continue
			}
			said++
			e.inside(r.Seen != here, "%s, and this machine's is %s", r.Seen, here)
		}
	}
	if own > 0 {
		e.outside(true, "%d namespaces of its own", own)
	}
	if own == 0 && said == 0 {
		p.unread(e, "namespaces")
	}
}

// onlyHarmless looks at its devices: in /dev or, where that can't be read, at what is
// mounted of this machine's.
func (w *Worker) onlyHarmless(e *evidence, p *Process) {
	devices := p.Devices
	if _, hidden := p.Unread["devices"]; hidden {
		if p.unread(about("", ""), "mounts") {
			p.unread(e, "devices")
			return
		}
		for _, m := range p.Mounts {
			if name, ok := strings.CutPrefix(m.Target, "/dev/"); ok && m.Type == "devtmpfs" {
				devices = append(devices, name)
			}
			if m.Type == "devtmpfs" && m.Root == "/" {
				e.outside(false, "this machine's /dev is at %s", m.Target)
			}
		}
	}
	bad := slices.ContainsFunc(devices, func(d string) bool { return !w.mayHave(d) })
	e.outside(!bad, "devices %s", strings.Join(devices, " "))
}

// mayHave reports whether a device may be in what holds the worker.
func (w *Worker) mayHave(device string) bool {
	return slices.Contains(engine.HarmlessDevices, device) || device == kvm && w.VM && !slices.Contains(w.NotHeld, "B13")
}

// host by the engine's settings.
func (s *settingsView) host(e *evidence) {
	for _, kind := range slices.Sorted(maps.Keys(s.Namespaces)) {
		v := s.Namespaces[kind]
		if v == "host" || kind == "pid" && v != "" || kind == "ipc" && v != "private" {
			e.outside(false, "the engine: %s is %q", kind, v)
		}
	}
	e.outside(len(s.Devices) == 0, "the engine: %d devices", len(s.Devices))
}
