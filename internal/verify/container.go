package verify

import (
	"fmt"
	"slices"
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
				if !m.Has("nosuid") {
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
