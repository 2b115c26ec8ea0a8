package verify

import (
	"slices"
	"strings"
)

// Judge judges what was seen of a worker.
func Judge(w *Worker) []Line {
	if w.Unseen != "" {
		w.Seen = Seen{}
	}
	lines := []Line{
		w.fileSystem(), w.limits(), w.sources(), w.protected(), w.copies(), w.ports(), w.secrets(), w.interfaces(), w.restarts(),
		w.names(), w.byName(), w.otherPorts(), w.neverReached(), w.denials(), w.neverList(), w.requests(), w.door(), w.terminal(),
		w.modelKeys(), w.environment(),
	}
	switch {
	case w.VM:
		return append(lines, w.capabilities(), w.privileges(), w.user(), w.host(), w.mainProcess(), w.machine(), w.ownRoom(), w.ownMachine(), w.bounds())
	case w.OwnKernel:
		return append(lines, w.ownCapabilities(), w.ownPrivileges(), w.ownUser(), w.ownHost(), w.ownMainProcess(), w.ownKernel(), w.ownRoom(), w.ownRuntime(), w.ownBounds())
	}
	return append(lines, w.capabilities(), w.privileges(), w.user(), w.host(), w.mainProcess(), w.room(), w.kernel(), w.bounds())
}

// begin starts a line about the worker; without what a probe or the machine shows, it is
// not tested.
func (w *Worker) begin(promise string) *evidence {
	e := about(promise, w.Name)
	if w.Unseen != "" {
		e.miss("inside: %s", w.Unseen)
	}
	return e
}

// process is what the kernel shows of the main process, of a virtual machine that which runs it; nil: e says why it isn't known. The
// engine names the process: it must be the one in whose PID namespace the probe ran, as far
// as the kernel shows both. A kernel of its own has other names for its namespaces.
func (w *Worker) process(e *evidence) *Process {
	p := w.Outside.process(e)
	if p != nil && !w.OwnKernel && p.Namespaces["pid"] != "" && strings.HasPrefix(w.Seen["ns.pid"].Seen, "pid:[") {
		is, said := p.Namespaces["pid"], w.Seen["ns.pid"].Seen
		e.control(is == said, "the process that the engine names is in %s, and the probe ran in %s", is, said)
	}
	return p
}

// files is the process whose mounts are the worker's: the main process, or of a kernel of its
// own the one that opens files for it.
func (w *Worker) files(e *evidence) *Process {
	p := w.process(e)
	if p == nil || !w.OwnKernel {
		return p
	}
	if w.Outside.Files == nil {
		e.miss("outside: the process that opens its files: %s", w.Outside.FilesHidden)
	}
	return w.Outside.Files
}

func (o *Outside) process(e *evidence) *Process {
	switch {
	case o == nil:
		e.miss("it was not looked at from outside")
	case o.Why != "":
		e.miss("outside: %s", o.Why)
	case o.Process == nil:
		e.miss("outside: %s", o.Hidden)
	default:
		return o.Process
	}
	return nil
}

// settings are those of the engine; nil: there are none.
func (o *Outside) settings() *settingsView {
	if o == nil || o.Settings == nil {
		return nil
	}
	return &settingsView{o.Settings}
}

// unread says that a part of a process couldn't be read.
func (p *Process) unread(e *evidence, part string) bool {
	why, is := p.Unread[part]
	if is {
		e.miss("outside: %s", why)
	}
	return is
}

// Services judges what was seen of a room or the guard. notHeld are the promises that a user
// waived.
func Services(name string, isRoom bool, notHeld []string, o *Outside) []Line {
	caps := about("B1", name)
	caps.tried("the capability sets of its main process")
	priv := about("B2", name)
	priv.tried("NoNewPrivs and Seccomp of its main process")
	lim := about("B5", name)
	lim.tried("the files of its control groups")
	for _, e := range []*evidence{caps, priv, lim} {
		if p := o.process(e); p != nil {
			p.isMain(e)
		}
	}
	if p := o.process(about("", "")); p != nil {
		want := noCapability
		if isRoom {
			want = roomCapabilities
		}
		for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
			caps.outside(p.Status[set] == want, "%s %s", set, p.Status[set])
		}
		p.privileges(priv, p.Status)
		p.anyLimits(lim)
	}
	if s := o.settings(); s != nil {
		s.privileges(priv)
	}
	limits := lim.line()
	if slices.Contains(notHeld, "B5") {
		limits = notTested("B5", name, limitsWaived)
	}
	return []Line{caps.line(), priv.line(), limits}
}

// GuardRestarts judges what brings the guard back (B29).
func GuardRestarts(o *Outside) Line {
	e := about("B29", "guard")
	e.tried("its restart policy")
	if o == nil || o.Why != "" {
		o.process(e)
		return e.line()
	}
	e.outside(o.Restart == "unless-stopped", "restart policy %s", o.Restart)
	return e.part(disruptiveHere)
}
