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
		w.capabilities(), w.privileges(), w.fileSystem(), w.user(), w.limits(), w.host(), w.sources(), w.protected(), w.copies(),
		w.ports(), w.secrets(), w.mainProcess(), w.interfaces(), w.restarts(), w.room(), w.names(), w.byName(), w.otherPorts(),
		w.neverReached(), w.denials(), w.kernel(), w.neverList(), w.requests(), w.door(), w.terminal(), w.modelKeys(), w.environment(), w.bounds(),
	}
	if !w.OwnKernel {
		return lines
	}
	for i := range lines {
		if !onAnyKernel[lines[i].Promise] {
			lines[i] = notTested(lines[i].Promise, w.Name, "its kernel is its own (B13), and shows something else than this machine's")
		}
	}
	return append(lines, w.ownKernel())
}

// onAnyKernel are the promises that are judged by what no kernel of a worker shows.
var onAnyKernel = map[string]bool{"B7": true, "B9": true, "B10": true, "B31": true, "B44": true, "B45": true}

// begin starts a line about the worker; without what a probe or the machine shows, it is
// not tested.
func (w *Worker) begin(promise string) *evidence {
	e := about(promise, w.Name)
	if w.Unseen != "" {
		e.miss("inside: %s", w.Unseen)
	}
	return e
}

// process is what the kernel shows of the main process; nil: e says why it isn't known. The
// engine names the process: it must be the one in whose PID namespace the probe ran, as far
// as the kernel shows both.
func (w *Worker) process(e *evidence) *Process {
	p := w.Outside.process(e)
	if p != nil && p.Namespaces["pid"] != "" && strings.HasPrefix(w.Seen["ns.pid"].Seen, "pid:[") {
		is, said := p.Namespaces["pid"], w.Seen["ns.pid"].Seen
		e.control(is == said, "the process that the engine names is in %s, and the probe ran in %s", is, said)
	}
	return p
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
