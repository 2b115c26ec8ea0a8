package verify

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// What a kernel in user space shows inside is its own doing: the verdicts here rest on this
// machine's view of its processes, on the engine's settings and on the worker's room.

// refusedInside are words of refusals of gVisor, which lacks much of what Linux has.
var refusedInside = append([]string{"ENODEV", "ENOTSUP", "EAFNOSUPPORT", "EPROTONOSUPPORT"}, noPermission...)

// ofGVisor are the capabilities that gVisor's processes have at most (gvisor: runsc/sandbox,
// runsc/cmd/gofer.go): CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SETGID, SETUID,
// SYS_CHROOT and SYS_PTRACE.
const ofGVisor = 0b1100_0000_0000_1101_1111

// kernels are the main processes of a kernel of its own: the one in which the worker runs, and
// the one that opens its files. Without both, e says why.
func (w *Worker) kernels(e *evidence) []*Process {
	p, files := w.process(e), w.files(e)
	if p == nil || files == nil {
		return nil
	}
	p.isMain(e)
	files.isMain(e)
	return []*Process{p, files}
}

// confined: in a user namespace of its own a process has no right over what isn't given to it,
// such as the namespaces of others; in this machine's it may have no capability.
func (p *Process) confined(e *evidence) {
	own, here := p.Namespaces["user"], p.Here["user"]
	switch {
	case own == "" || here == "":
		if !p.unread(e, "namespaces") {
			e.miss("outside: the user namespace of process %s isn't known", p.Status["Pid"])
		}
	case own == here:
		e.outside(p.Status["CapEff"] == noCapability, "process %s has this machine's user namespace, and CapEff %s", p.Status["Pid"], p.Status["CapEff"])
	default:
		e.outside(true, "process %s has a user namespace of its own", p.Status["Pid"])
	}
}

// settingsAre judges the engine's settings, by which a kernel of its own was made.
func (w *Worker) settingsAre(e *evidence, what string, judge func(*settingsView)) {
	if s := w.Outside.settings(); s != nil {
		judge(s)
	} else {
		e.miss("outside: the engine's %s of it aren't known", what)
	}
}

func (w *Worker) ownCapabilities() Line {
	e := w.begin("B1")
	e.tried("a raw socket, a device node; the capability sets that its kernel shows, and those of that kernel's processes")
	e.refused(w.Seen, "refused", []string{"EPERM", "EACCES"}, "cap.raw socket", "cap.device node")
	for _, set := range []string{"CapEff", "CapBnd"} { // gVisor shows no ambient ones
		e.says(w.Seen, "cap."+set, set, noCapability)
	}
	e.works(w.Seen, "control.socket", "an ordinary socket", "ok")
	for _, p := range w.kernels(e) {
		p.confined(e)
		for _, s := range p.all() {
			if n, err := strconv.ParseUint(s["CapEff"], 16, 64); err != nil || n&^ofGVisor != 0 {
				e.outside(false, "CapEff of process %s is %s, want at most %016x", s["Pid"], s["CapEff"], uint64(ofGVisor))
			}
		}
	}
	w.settingsAre(e, "capabilities", func(s *settingsView) {
		e.outside(len(s.CapAdd) == 0 && slices.Contains(s.CapDrop, "ALL"), "the engine: cap_add %v, cap_drop %v", s.CapAdd, s.CapDrop)
	})
	return e.line()
}

func (w *Worker) ownPrivileges() Line {
	e := w.begin("B2")
	var keys []string
	for _, call := range systemCalls {
		if call != "setns" && call != "clone3" { // gVisor has these, as it has user namespaces: all are its own
			keys = append(keys, "call."+call)
		}
	}
	e.tried("%d system calls and %d kinds of sockets; NoNewPrivs and Seccomp of its kernel's processes", len(keys), len(families))
	for _, f := range sortedKeys(families) {
		keys = append(keys, "socket."+f)
	}
	e.refused(w.Seen, "refused", refusedInside, keys...)
	e.works(w.Seen, "control.getpid", "getpid", "ok")
	for _, p := range w.kernels(e) {
		for _, s := range p.all() {
			p.privileges(e, s)
		}
	}
	w.settingsAre(e, "security options", func(s *settingsView) { s.privileges(e) })
	return e.line()
}

func (w *Worker) ownUser() Line {
	e := w.begin("B4")
	e.tried("its uid, and the user that the engine was asked for")
	uid, _, _ := strings.Cut(w.Seen["uid"].Seen, ":")
	if _, ok := w.Seen["uid"]; ok {
		e.inside(uid != "0" && uid != "", "uid %s", saw(w.Seen["uid"]))
	} else {
		e.miss("the probe said nothing of its uid")
	}
	w.settingsAre(e, "user", func(s *settingsView) {
		asked, _, _ := strings.Cut(s.User, ":")
		e.outside(asked != "" && strings.Trim(asked, "0") != "", "the engine: user %q", s.User)
		e.control(uid == asked, "its kernel gave it the uid that was asked for, %s: %s", asked, uid)
	})
	return e.line()
}

func (w *Worker) ownHost() Line {
	e := w.begin("B6")
	e.tried("namespaces, devices and mounts of its kernel's processes; %s", strings.Join(engineSockets, ", "))
	w.noEngine(e)
	w.pid1(e)
	w.settingsAre(e, "namespaces and devices", func(s *settingsView) { s.host(e) })
	for _, p := range w.kernels(e) {
		own := 0
		for _, kind := range []string{"pid", "ipc", "mnt", "net", "uts"} { // its kernel shows no names of control groups
			switch is, here := p.Namespaces[kind], p.Here[kind]; {
			case is == "" || here == "":
				e.miss("outside: the %s namespace of process %s isn't known", kind, p.Status["Pid"])
			case is == here:
				e.outside(false, "the %s namespace of process %s is this machine's (%s)", kind, p.Status["Pid"], is)
			default:
				own++
			}
		}
		e.outside(true, "process %s: %d namespaces of its own", p.Status["Pid"], own)
		w.onlyHarmless(e, p)
	}
	if p := w.process(about("", "")); p != nil && !p.unread(e, "mounts") {
		for _, m := range p.Mounts { // files come by the other process alone
			if !m.ReadOnly() && !slices.Contains([]string{"tmpfs", "proc"}, m.Type) {
				e.outside(false, "its kernel has %s mounted rw (%s)", m.Target, m.Type)
			}
		}
	}
	return e.line()
}

// pid1 tries to look into PID 1, whose memory has what the worker was started with.
func (w *Worker) pid1(e *evidence) {
	e.tried("looking into PID 1")
	e.refused(w.Seen, "closed", []string{"EACCES", "EPERM"}, "host./proc/1/exe", "host./proc/1/environ")
	r, ok := w.Seen["control./proc/self/fd"]
	e.control(ok && strings.HasPrefix(r.Seen, "0,1,2"), "its own /proc/self/fd: %s", saw(r))
}

func (w *Worker) ownMainProcess() Line {
	e := w.begin("B12")
	e.tried("its PID 1 by its kernel, and what the engine was told to start")
	e.says(w.Seen, "pid1.Name", "the name of PID 1:", initName)
	w.pid1(e)
	w.settingsAre(e, "main process", func(s *settingsView) { s.mainProcess(e) })
	return e.line()
}

// ownKernel compares the kernel that the worker sees with this machine's, which may not have
// the worker's main process among its own.
func (w *Worker) ownKernel() Line {
	e := w.begin("B13")
	e.tried("the boot id and version of its kernel; the processes that this machine's runs for it")
	for _, is := range []struct{ key, what, here string }{{"kernel.boot", "boot id", w.Machine.BootID}, {"kernel.version", "version", w.Machine.Version}} {
		w.anotherKernel(e, is.key, is.what, is.here)
	}
	if p := w.process(e); p != nil {
		for _, s := range p.all() {
			if s["Name"] == initName {
				e.outside(false, "process %s of this machine is %s", s["Pid"], initName)
			}
		}
		e.outside(true, "process %s of this machine, %s, is in its place", p.Status["Pid"], p.Status["Name"])
	}
	return e.line()
}

// anotherKernel compares what a worker reads of its kernel with that of this machine's.
func (w *Worker) anotherKernel(e *evidence, key, what, here string) {
	r := w.Seen[key]
	seen := strings.TrimSpace(r.Detail)
	if here == "" || seen == "" {
		e.miss("the %s of its kernel and this machine's can't be compared", what)
		return
	}
	e.inside(seen != here, "%s %s", what, seen)
	e.control(r.Seen == "ok", "reading it: %s", r.Seen)
}

// guardsPorts are those of a room that its guard serves.
func guardsPorts(listening []string) (out []string) {
	for _, at := range listening {
		port, err := strconv.Atoi(at[strings.LastIndex(at, ":")+1:])
		if err == nil && port >= firewall.PortDNS && port <= firewall.PortProxy {
			out = append(out, at)
		}
	}
	return out
}

// ownRoom: the network that the worker could change is its kernel's own. Its room may not
// change, nor may its kernel have a right over it.
func (w *Worker) ownRoom() Line {
	e := w.begin("B22")
	e.tried("changing routes, addresses and rules; its room's addresses, routes and the guard's listeners before and after")
	e.refused(w.Seen, "refused", refusedInside, "room.route", "room.address", "room.rules", "room.xtables")
	e.works(w.Seen, "control.bind", "listening on a high port", "ok")
	switch p := w.process(e); {
	case p == nil:
	case w.VM: // it has no capability
		p.isMain(e)
	default:
		p.isMain(e)
		p.confined(e)
	}
	if w.Net == nil {
		return e.line()
	}
	before, after := w.RoomBefore.process(e), w.RoomAfter.process(e)
	if before == nil || after == nil {
		return e.line()
	}
	was, is := guardsPorts(before.Listening), guardsPorts(after.Listening)
	e.control(before.Network != "" && len(was) > 0, "its room shows addresses, and %d listeners of the guard", len(was))
	e.outside(before.Network == after.Network, "its room has the addresses and routes that it had: %v", before.Network == after.Network)
	for _, at := range was {
		if !slices.Contains(is, at) {
			e.outside(false, "nothing listens at %s in its room any more", at)
		}
	}
	e.outside(true, "the guard listens at %d ports there", len(is))
	return e.line()
}

// ownRuntime: the runtime is the one whose workers are carried, and its network namespace is
// that of the worker's room, which has no cable.
func (w *Worker) ownRuntime() Line {
	e := about("B30", w.Name)
	e.tried("its runtime, and the network namespace of its kernel")
	w.settingsAre(e, "runtime", func(s *settingsView) {
		e.outside(w.Runtime != "" && s.Runtime == w.Runtime, "the engine: runtime %s", s.Runtime)
	})
	p := w.process(e)
	if p == nil {
		return e.line()
	}
	p.isMain(e)
	w.inRoom(e, p)
	if !p.unread(e, "interfaces") {
		e.outside(slices.Equal(p.Interfaces, []string{"lo"}), "interfaces: %s", strings.Join(p.Interfaces, ", "))
	}
	return e.line()
}

// inRoom judges whether a process has the network namespace of the worker's room.
func (w *Worker) inRoom(e *evidence, p *Process) {
	net := p.Namespaces["net"]
	switch room := w.RoomAfter.process(about("", "")); {
	case net == "":
		e.miss("outside: the network namespace of its kernel isn't known")
	case w.Net == nil:
		e.outside(net != p.Here["net"], "its kernel is in %s, and this machine in %s", net, p.Here["net"])
	case room == nil || room.Namespaces["net"] == "":
		e.miss("outside: the network namespace of its room isn't known")
	default:
		e.outside(net == room.Namespaces["net"], "its kernel is in %s, and its room in %s", net, room.Namespaces["net"])
	}
}

// ownBounds: what it opens and queues is memory and threads of its kernel.
func (w *Worker) ownBounds() Line {
	e := about("B60", w.Name)
	e.tried("the limits of its kernel's memory and threads")
	if p := w.process(e); p != nil {
		p.anyLimits(e)
	}
	return e.part(disruptiveHere)
}
