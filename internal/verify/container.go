package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

const (
	noCapability = "0000000000000000"
	// NET_BIND_SERVICE (10) and NET_ADMIN (12), capabilities(7)
	roomCapabilities = "0000000000001400"
)

// initName is what the kernel calls our programs.
const initName = "workshop-init"

// isMain is the control of what is read from /proc: the process is PID 1 of a PID
// namespace below ours.
func (p *Process) isMain(e *evidence) {
	ns := strings.Fields(p.Status["NSpid"])
	e.control(len(ns) >= 2 && ns[len(ns)-1] == "1", "it is PID 1 in its namespace and %s here", p.Status["Pid"])
}

// all are the main process and those below it, each with a name for messages.
func (p *Process) all() []map[string]string { return append([]map[string]string{p.Status}, p.Below...) }

func (p *Process) processes() string {
	if len(p.Below) == 0 {
		return "its main process"
	}
	return fmt.Sprintf("its main process and %d below it", len(p.Below))
}

func (w *Worker) capabilities() Line {
	e := w.begin("B1")
	e.tried("a raw socket, a device node; the capability sets of its processes")
	e.refused(w.Seen, "refused", []string{"EPERM", "EACCES"}, "cap.raw socket", "cap.device node")
	for _, set := range []string{"CapEff", "CapBnd", "CapAmb"} {
		e.says(w.Seen, "cap."+set, set, noCapability)
	}
	e.works(w.Seen, "control.socket", "an ordinary socket", "ok")
	if p := w.process(e); p != nil {
		p.isMain(e)
		bad := false
		for _, s := range p.all() {
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				if s[set] != noCapability {
					bad = true
					e.outside(false, "%s of process %s is %s", set, s["Pid"], s[set])
				}
			}
		}
		if !bad {
			e.outside(true, "%s: all five sets are empty", p.processes())
		}
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(len(s.CapAdd) == 0 && slices.Contains(s.CapDrop, "ALL"), "the engine: cap_add %v, cap_drop %v", s.CapAdd, s.CapDrop)
	}
	return e.line()
}

// privileges of one process.
func (*Process) privileges(e *evidence, s map[string]string) {
	if s["NoNewPrivs"] != "1" || s["Seccomp"] != "2" {
		e.outside(false, "process %s: NoNewPrivs %s, Seccomp %s, want 1 and 2", s["Pid"], s["NoNewPrivs"], s["Seccomp"])
		return
	}
	e.outside(true, "process %s: NoNewPrivs 1, Seccomp 2", s["Pid"])
}

type settingsView struct{ *engine.Settings }

// privileges by the engine's settings.
func (s *settingsView) privileges(e *evidence) {
	e.outside(!s.Privileged, "the engine: privileged %v", s.Privileged)
	nnp := slices.ContainsFunc(s.Security, func(o string) bool {
		return slices.Contains([]string{"no-new-privileges", "no-new-privileges:true", "no-new-privileges=true"}, o)
	})
	profile := slices.ContainsFunc(s.Security, func(o string) bool {
		return strings.HasPrefix(o, "seccomp=") && o != "seccomp=unconfined"
	})
	e.outside(nnp && profile, "the engine: security options %s", strings.Join(s.Security, ", "))
}

func (w *Worker) privileges() Line {
	e := w.begin("B2")
	e.tried("%d system calls, %d kinds of sockets and a user namespace; NoNewPrivs and Seccomp", len(systemCalls), len(families))
	e.says(w.Seen, "priv.NoNewPrivs", "NoNewPrivs", "1")
	e.says(w.Seen, "priv.Seccomp", "Seccomp", "2")
	var keys []string
	for _, call := range append(slices.Clone(systemCalls), "user namespace") {
		keys = append(keys, "call."+call)
	}
	for _, f := range sortedKeys(families) {
		keys = append(keys, "socket."+f)
	}
	e.refused(w.Seen, "refused", noPermission, keys...)
	e.works(w.Seen, "control.getpid", "getpid", "ok")
	if p := w.process(e); p != nil {
		p.isMain(e)
		for _, s := range p.all() {
			p.privileges(e, s)
		}
		if w.Outside.NoSetuid {
			for _, m := range p.Mounts {
				if !m.has("nosuid") {
					e.outside(false, "setuid files count at %s", m.Target)
				}
			}
		}
	}
	if s := w.Outside.settings(); s != nil {
		s.privileges(e)
	}
	return e.line()
}

func (w *Worker) user() Line {
	e := w.begin("B4")
	e.tried("uid, gid and groups of its processes")
	r, ok := w.Seen["uid"]
	if ok {
		uid, _, _ := strings.Cut(r.Seen, ":")
		e.inside(uid != "0" && uid != "", "uid %s", saw(r))
	} else {
		e.miss("the probe said nothing of its uid")
	}
	if p := w.process(e); p != nil {
		p.isMain(e)
		for _, s := range p.all() {
			ids := strings.Fields(s["Uid"] + " " + s["Gid"])
			bad := len(ids) != 8 || slices.Contains(ids, "0") || slices.Contains(strings.Fields(s["Groups"]), "0")
			if bad {
				e.outside(false, "process %s has uid %s, gid %s, groups %s", s["Pid"], s["Uid"], s["Gid"], s["Groups"])
			}
		}
		e.outside(true, "%s: uid %s, gid %s", p.processes(), firstField(p.Status["Uid"]), firstField(p.Status["Gid"]))
	} else if s := w.Outside.settings(); s != nil {
		e.outside(s.User != "" && !strings.HasPrefix(s.User, "0"), "the engine: user %q", s.User)
	}
	return e.line()
}

func firstField(s string) string {
	f := strings.Fields(s)
	if len(f) == 0 {
		return "?"
	}
	return f[0]
}

func (w *Worker) limits() Line {
	if slices.Contains(w.NotHeld, "B5") {
		return notTested("B5", w.Name, "waived at `up` by --without-limits")
	}
	e := about("B5", w.Name)
	e.tried("the files of its control groups")
	if p := w.process(e); p != nil && !p.unread(e, "groups") && p.Groups != nil {
		g := p.Groups
		e.control(g.Member, "the groups list process %s: %v", p.Status["Pid"], g.Member)
		w.limit(e, g.Memory > 0 && g.Memory <= w.Memory, "memory", strconv.FormatInt(g.Memory, 10), strconv.FormatInt(w.Memory, 10), g.Memory == 0)
		e.outside(g.Swap == 0, "swap beyond memory %d", g.Swap)
		w.limit(e, g.CPUs > 0 && g.CPUs <= w.CPUs*1.01, "cpu", fmt.Sprintf("%.3g", g.CPUs), fmt.Sprintf("%.3g", w.CPUs), g.CPUs == 0)
		w.limit(e, g.PIDs > 0 && g.PIDs <= w.PIDs, "pids", strconv.FormatInt(g.PIDs, 10), strconv.FormatInt(w.PIDs, 10), g.PIDs == 0)
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(s.Memory > 0 && s.Swap == s.Memory && s.CPUs > 0 && s.PIDs > 0, "the engine: memory %d, with swap %d, cpu %.3g, pids %d", s.Memory, s.Swap, s.CPUs, s.PIDs)
	}
	if w.Outside != nil && w.Outside.Why == "" {
		e.outside(w.Outside.LogBounded, "what it prints is kept up to a size: %v", w.Outside.LogBounded)
	}
	return e.line()
}

// limit compares a limit with the file's. Where the file changed since, another one is
// no break; none is.
func (w *Worker) limit(e *evidence, ok bool, name, is, want string, none bool) {
	if !ok && w.Changed && !none {
		e.miss("%s is %s and not %s: %s", name, is, want, fileChanged)
		return
	}
	e.outside(ok, "%s %s of %s", name, is, want)
}

const fileChanged = "the file changed since `up`; `workshop up` applies it"

// anyLimits is for what isn't in the file.
func (p *Process) anyLimits(e *evidence) {
	if p.unread(e, "groups") || p.Groups == nil {
		return
	}
	g := p.Groups
	e.control(g.Member, "the groups list process %s: %v", p.Status["Pid"], g.Member)
	e.outside(g.Memory > 0 && g.Swap == 0 && g.CPUs > 0 && g.PIDs > 0, "memory %d, swap beyond it %d, cpu %.3g, pids %d", g.Memory, g.Swap, g.CPUs, g.PIDs)
}

// kinds of namespaces that a worker has to itself.
var kinds = []string{"pid", "ipc", "mnt", "net", "uts", "cgroup"}

// harmless are the devices of every container.
var harmless = []string{"console", "full", "null", "ptmx", "random", "tty", "urandom", "zero"}

func (w *Worker) host() Line {
	e := w.begin("B6")
	e.tried("namespaces and devices of its main process; %s; /proc/1", strings.Join(engineSockets, ", "))
	var keys []string
	for _, s := range engineSockets {
		keys = append(keys, "host."+s)
	}
	e.refused(w.Seen, "not there", notThere, keys...)
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
	p.onlyHarmless(e)
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

// namespaces compares them with ours. Without root some can't be read from outside: the
// kernel shows those of PIDs, mounts and interfaces, the rest is what the probe says.
func (w *Worker) namespaces(e *evidence, p *Process) {
	own, said := 0, 0
	for _, kind := range kinds {
		is, here := p.Namespaces[kind], p.Here[kind]
		switch {
		case here == "":
		case is == here:
			e.outside(false, "its %s namespace is this machine's (%s)", kind, is)
		case is != "":
			own++
		case kind == "pid" || kind == "mnt" && p.at("/opt/workshop") != nil || kind == "net" && slices.Equal(p.Interfaces, []string{"lo"}):
			own++ // isMain, and what /proc shows of mounts and interfaces
		default:
			r, ok := w.Seen["ns."+kind]
			if !ok || !strings.HasPrefix(r.Seen, kind+":[") {
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
func (p *Process) onlyHarmless(e *evidence) {
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
	bad := slices.ContainsFunc(devices, func(d string) bool { return !slices.Contains(harmless, d) })
	e.outside(!bad, "devices %s", strings.Join(devices, " "))
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

func (w *Worker) mainProcess() Line {
	e := w.begin("B12")
	e.tried("name, arguments and PID of its main process")
	e.says(w.Seen, "pid1.Name", "the name of PID 1:", initName)
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["Name"] == initName, "this machine's kernel calls it %s", p.Status["Name"])
		e.outside(len(p.Args) >= 2 && strings.HasSuffix(p.Args[0], "/"+initName) && p.Args[1] == "gate", "its arguments begin %s", strings.Join(p.Args[:min(2, len(p.Args))], " "))
	} else if s := w.Outside.settings(); s != nil {
		e.outside(len(s.Main) >= 2 && strings.HasSuffix(s.Main[0], "/"+initName) && s.Main[1] == "gate", "the engine: it is %s", strings.Join(s.Main[:min(2, len(s.Main))], " "))
	}
	return e.line()
}

func (w *Worker) kernel() Line {
	e := about("B30", w.Name)
	e.tried("its main process by this machine's kernel")
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["Name"] != "", "process %s of this machine's kernel is its main process", p.Status["Pid"])
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(true, "the engine: runtime %s", s.Runtime)
	}
	return e.line()
}

func (w *Worker) restarts() Line {
	e := about("B21", w.Name)
	e.tried("the restart policy: a worker that comes back by itself would be there before its room")
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return e.line()
	}
	e.outside(w.Outside.Restart == "no", "restart policy %s", w.Outside.Restart)
	if p := w.Outside.Process; p != nil && w.Outside.NoSetuid && len(strings.Fields(p.Status["NSpid"])) < 3 {
		e.outside(false, "it isn't below a PID namespace of its supervisor, and would outlive it")
	}
	return e.part(disruptiveHere)
}

func (w *Worker) terminal() Line {
	e := about("B43", w.Name)
	e.tried("the terminals of its processes")
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["tty"] == "0", "its main process has no terminal (tty_nr %s)", p.Status["tty"])
	}
	return e.part(elsewhere)
}

func (w *Worker) bounds() Line {
	e := about("B60", w.Name)
	e.tried("limits of open files and queued signals of its main process")
	if p := w.process(e); p != nil && !p.unread(e, "limits") {
		p.isMain(e)
		for _, name := range []string{"Max open files", "Max pending signals"} {
			n, err := strconv.Atoi(p.Limits[name])
			e.outside(err == nil && n > 0 && n <= 1<<16 && (name != "Max pending signals" || n <= 4096), "%s %s", strings.ToLower(name[4:]), p.Limits[name])
		}
	}
	return e.part(disruptiveHere)
}

func (w *Worker) door() Line {
	e := w.begin("B41")
	e.tried("tools that its file doesn't list, asked of its toolbox past the host; reading workshop-init, and writing where the host connects")
	e.refused(w.Seen, "refused", readOnly, "init.workshop-init", "init.door")
	e.works(w.Seen, "control.write", "a file in /tmp", "ok")
	t := &w.Toolbox
	var fine []string
	for _, a := range t.Unlisted {
		switch {
		case a.Answer == NotOffered:
			fine = append(fine, a.What)
		case a.Answer == "no answer":
			e.miss("its toolbox didn't answer to %s", a.What)
		case w.Changed:
			e.miss("%s: %s: %s", a.What, a.Answer, fileChanged)
		default:
			e.inside(false, "%s: %s", a.What, a.Answer)
		}
	}
	if len(fine) > 0 {
		e.inside(true, "not offered: %s", strings.Join(fine, ", "))
	}
	if t.Why != "" || len(t.Unlisted) == 0 {
		e.miss("its toolbox: %s", t.Why)
	} else {
		e.control(t.Control != "" && !strings.HasSuffix(t.Control, NotOffered), "its toolbox: %s", t.Control)
	}
	if p := w.process(e); p != nil {
		for _, m := range p.Mounts {
			if m.Target == "/run/workshop" || m.Target == "/opt/workshop" {
				e.outside(m.has("ro"), "%s is mounted %s", m.Target, mode(m.has("ro")))
			}
		}
	}
	return e.line()
}
